"""Kills and restarts while facts and telemetry flow through real Kafka into real Postgres: nothing lost, nothing doubled.

    make chaos                                    20,000 facts, 200,000 windows, 30 kills, 2 crashes of the broker
    python3 tests/chaos --share                   a small one, as in `make test`
    python3 tests/chaos --facts N --windows N --kills N --restarts N --seed N

Two consumers of one group read; one of them is held at a failpoint and killed with SIGKILL again and again, at least half of
the times inside a transaction that the server sees open. Then every table and report is compared with those of a second database
that took the same file by `replay`, undisturbed. The last line is `RESULT chaos key=value …`."""
import argparse
import contextlib
import fcntl
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import compare
import fleet
from feed import Feed
from members import INSIDE, OUTSIDE, REBALANCE, Member, wait_until
from place import ROOT, STATE, Broker, Failed, Ledger

SESSION = 6  # seconds: the least the broker allows
PATIENCE = 180
# Every third kill leaves the other consumer time to take the dead one's partitions over.
ABSENCE = SESSION + 3


def say(text):
    print(f"chaos: {text}", flush=True)


class Run:
    """One run: the fleet's events, the disturbed ledger, its members, the broker."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.random = random.Random(options.seed)
        self.kills, self.inside, self.clean_ends = Counter(), 0, 0

    def go(self):
        o, folder = self.options, self.folder
        # A copy, so that the next build does not pull the program from under the run.
        binary = folder / "gpuledger"
        shutil.copy2(o.binary, binary)
        events = folder / "events.ndjson"
        facts, windows, clock, begin = fleet.write(events, o.seed, o.facts, o.windows)
        say(f"seed {o.seed}: {facts} lines of facts ({o.facts} different), {windows} of windows ({o.windows} different), clock {clock}")
        with contextlib.ExitStack() as undo:
            self.broker = Broker()
            undo.callback(self.broker.stop)
            bootstrap = self.broker.start()
            calm = self.ledger(undo, binary, clock)
            rough = self.ledger(undo, binary, clock, {
                "GPULEDGER_KAFKA_BOOTSTRAP": bootstrap, "GPULEDGER_KAFKA_TOPIC_PREFIX": f"chaos{int(time.time())}.",
                "GPULEDGER_KAFKA_SESSION_SECONDS": str(SESSION)})
            began = time.monotonic()
            calm.call("replay", events, "--as-of", clock)
            undisturbed = time.monotonic() - began
            say(f"undisturbed by replay: {undisturbed:.0f} s")
            began = time.monotonic()
            self.members = [Member(name, rough, folder) for name in ("ledger-0", "ledger-1")]
            for member in self.members:
                undo.callback(member.end)
            self.feed = Feed(rough, events, facts + windows, folder / "publish.log")
            undo.callback(self.feed.end)
            self.disturb(facts + windows)
            self.feed.finish()
            self.drained(rough, facts, windows)
            for member in self.members:
                member.drain()
                self.clean_ends += 1
            took = time.monotonic() - began
            return self.judge(calm, rough, (facts, windows), (begin, clock), (undisturbed, took))

    def ledger(self, undo, *about):
        ledger = Ledger(*about)
        if not self.options.keep:
            undo.callback(ledger.drop)
        return ledger

    # ---- disturbing ----

    def plan(self):
        """The points, shuffled: two thirds inside a transaction, the rest after commit and in rebalances, every kind at least once."""
        kills = self.options.kills
        others = max(kills // 3, 2)
        points = [OUTSIDE[0] if n % 2 else REBALANCE[n // 2 % 2] for n in range(others)]
        points += [INSIDE[n % len(INSIDE)] for n in range(kills - others)]
        self.random.shuffle(points)
        return points

    def disturb(self, lines):
        """The second consumer is killed again and again; the first one stays, or leaves and comes back where a partition is to be taken."""
        points = self.plan()
        restarts = {len(points) * (n + 1) // (self.options.restarts + 1) for n in range(self.options.restarts)}
        other, victim = self.members
        other.start()
        # A tenth stays for the end, when nobody is killed any more.
        self.piece = max(lines * 9 // 10 // max(len(points), 1), 1)
        for number, point in enumerate(points):
            passes = "" if point in REBALANCE else f"{self.random.randrange(0, 2)}*off->"
            victim.start(f"{point}={passes}return")
            self.feed.allow(self.piece)
            if number in restarts:
                self.broker.crash_and_come_back()
                say(f"the broker crashed and came back ({self.broker.restarts})")
            if point == "messaging::revoke":
                self.leave_and_come_back(other, victim)
            self.kill_at(point, victim, other)
            say(f"kill {number + 1} at {point}; {self.inside} inside a transaction so far")
            if number % 3 == 2:
                time.sleep(ABSENCE)
        victim.start()

    def leave_and_come_back(self, other, victim):
        """A partition is taken from the victim when the other was gone for longer than its session, and comes back."""
        wait_until(f"{victim.name} has partitions", lambda: "partitions assigned" in victim.said(), PATIENCE)
        other.drain()
        self.clean_ends += 1
        time.sleep(ABSENCE)
        other.start()

    def kill_at(self, point, victim, other):
        """Waits until the victim is held at its failpoint, looks at what it has open, and kills it."""
        self.hold(victim, other)
        if point in INSIDE:
            self.inside += victim.open_transactions() > 0
        victim.kill()
        self.kills[point] += 1

    def revive(self, member):
        if member.ended_by_itself():
            member.start()

    def hold(self, victim, other):
        fed = time.monotonic()

        def held():
            nonlocal fed
            if time.monotonic() > fed + 10:
                # It may have passed all there was: a little more keeps it busy.
                self.feed.allow(max(self.piece // 10, 1))
                fed = time.monotonic()
            if not self.feed.is_alive():
                raise Failed(f"publish ended: see {self.feed.log.name}")
            self.revive(other)
            if victim.ended_by_itself():
                raise Failed(victim.deaths[-1])
            return victim.is_held()

        wait_until(f"{victim.name} at its failpoint", held, PATIENCE)

    # ---- the end ----

    def drained(self, ledger, facts, windows):
        """Every record's offset is stored behind it, what telemetry touched is settled, and hours are packed."""
        prefix = ledger.env["GPULEDGER_KAFKA_TOPIC_PREFIX"]
        at = {}

        def done():
            for member in self.members:
                self.revive(member)
            rows = ledger.sql("SELECT topic, sum(next_offset) FROM consumer_offset GROUP BY topic")
            at.update({topic.removeprefix(prefix): int(offset) for topic, offset in rows})
            return (at.get("gpuledger.facts.v1", 0) >= facts and at.get("gpuledger.telemetry.v1", 0) >= windows
                    and ledger.number("SELECT (SELECT count(*) FROM touched) + (SELECT count(*) FROM unsettled)") == 0)

        wait_until("the topics are read to their end", done, 10 * PATIENCE, every=1)
        self.offsets = {topic: offset for topic, offset in at.items() if offset}
        # The last hour is not over, and is packed by itself only after a while.
        ledger.call("replay", os.devnull)

    def judge(self, calm, rough, lines, times, seconds):
        o, (facts, windows) = self.options, lines
        wrong = []
        expected = {"gpuledger.facts.v1": facts, "gpuledger.telemetry.v1": windows}
        if self.offsets != expected:
            wrong.append(f"offsets {self.offsets}, published {expected}")
        compared, different, counts = compare.differences(rough, calm, *times)
        wrong += different
        for ledger, name in ((calm, "undisturbed"), (rough, "disturbed")):
            try:
                say(f"{name}: {ledger.call('ledger', 'verify').strip().splitlines()[-1]}")
            except Failed as e:
                wrong.append(f"{name}: {e}")
        killed = sum(self.kills.values())
        telemetry = rough.number("SELECT COALESCE(sum(windows), 0) FROM telemetry_block")
        for fault, text in ((counts["fact"] != o.facts, f"{counts['fact']} facts, want {o.facts}"),
                            (telemetry != o.windows, f"{telemetry} windows, want {o.windows}"),
                            (killed != o.kills, f"{killed} kills, want {o.kills}"),
                            (self.inside * 2 < killed, f"{self.inside} of {killed} kills inside an open transaction, want half"),
                            (self.broker.restarts != o.restarts, f"{self.broker.restarts} restarts of the broker, want {o.restarts}")):
            if fault:
                wrong.append(text)
        deaths = [death for member in self.members for death in member.deaths]
        wrong += [f"ended by itself: {death}" for death in deaths]
        self.report(counts, telemetry, compared, wrong, *seconds)
        return not wrong

    def report(self, counts, telemetry, compared, wrong, undisturbed, took):
        for point, times in sorted(self.kills.items()):
            say(f"killed at {point}: {times}")
        say(f"{self.clean_ends} clean ends by SIGTERM")
        say(", ".join(f"{table} {rows}" for table, rows in counts.items()))
        for line in wrong:
            say(f"WRONG: {line}")
        say(f"{compared} tables and reports compared with the undisturbed run, {len(wrong)} things wrong")
        print(f"RESULT chaos kills={sum(self.kills.values())} inside_transaction={self.inside} broker_restarts={self.broker.restarts} "
              f"facts={counts['fact']} windows={telemetry} parked={counts['parked']} compared={compared} "
              f"seconds={took:.0f} undisturbed_seconds={undisturbed:.0f} equal={'yes' if not wrong else 'no'}", flush=True)


def arguments():
    parser = argparse.ArgumentParser(prog="tests/chaos", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, full in (("facts", 20_000), ("windows", 200_000), ("kills", 30), ("restarts", 2), ("seed", 7)):
        parser.add_argument(f"--{name}", type=int, default=full)
    parser.add_argument("--share", action="store_true", help="2,000 facts, 10,000 windows, 6 kills, 1 crash of the broker")
    parser.add_argument("--keep", action="store_true", help="keep databases and logs")
    parser.add_argument("--binary", type=Path, default=ROOT / "target" / "debug" / "gpuledger")
    options = parser.parse_args()
    options.binary = options.binary.resolve()
    if options.share:
        options.facts, options.windows, options.kills, options.restarts = 2_000, 10_000, 6, 1
    return options


def main():
    options = arguments()
    STATE.mkdir(parents=True, exist_ok=True)
    with open(STATE / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = Path(tempfile.mkdtemp(prefix="run-", dir=STATE))
        # Settings of the user's own say nothing here.
        for name in [name for name in os.environ if name.startswith("GPULEDGER_")]:
            del os.environ[name]
        os.chdir(folder)
        try:
            equal = Run(options, folder).go()
        except Failed as e:
            say(f"WRONG: {e}")
            equal = False
        if equal and not options.keep:
            shutil.rmtree(folder)
        else:
            say(f"logs are in {folder}")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
