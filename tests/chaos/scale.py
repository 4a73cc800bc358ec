"""Ledgers join and leave while facts and telemetry flow; then the database is lost, restored from a dump taken while they ran, and goes on from
the broker; then the broker is lost, and everything is sent once more. Nothing lost, nothing doubled, and no start on offsets that do not fit.

    python3 tests/chaos/scale.py                  20,000 facts, 100,000 windows, 9 joins and leaves
    python3 tests/chaos/scale.py --share          a small one, as in `make test`

Everything is compared with a second database that took the same file by `replay`, undisturbed. The last line is `RESULT scale key=value …`."""
import argparse
import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import compare
import fleet
from feed import Feed
from members import Member, wait_until
from place import LOCAL, ROOT, STATE, Broker, Failed, Ledger, call, last_line

SESSION = 6  # seconds: the least the broker allows
PATIENCE = 180
REFUSED = "do not fit the broker, so nothing is read"


def say(text):
    print(f"scale: {text}", flush=True)


class Scale:
    """One run: three ledgers by name, of which one to three run."""

    def __init__(self, options, folder):
        self.options, self.folder, self.wrong = options, folder, []
        self.joins = self.leaves = self.refusals = 0

    def go(self):
        o, folder = self.options, self.folder
        binary = folder / "gpuledger"
        shutil.copy2(o.binary, binary)
        events = folder / "events.ndjson"
        facts, windows, clock, begin = fleet.write(events, o.seed, o.facts, o.windows)
        self.total = facts + windows
        say(f"seed {o.seed}: {facts} lines of facts, {windows} of windows, clock {clock}")
        with contextlib.ExitStack() as undo:
            self.broker = Broker()
            undo.callback(self.broker.stop)
            bootstrap = self.broker.start()
            calm = Ledger(binary, clock)
            undo.callback(calm.drop)
            self.ledger = Ledger(binary, clock, {
                "GPULEDGER_KAFKA_BOOTSTRAP": bootstrap, "GPULEDGER_KAFKA_TOPIC_PREFIX": f"scale{int(time.time())}.",
                "GPULEDGER_KAFKA_SESSION_SECONDS": str(SESSION)})
            undo.callback(lambda: self.ledger.drop())
            calm.call("replay", events, "--as-of", clock)
            self.members = {name: Member(name, self.ledger, folder) for name in ("ledger-0", "ledger-1", "ledger-2")}
            for member in self.members.values():
                undo.callback(member.end)
            self.feed = Feed(self.ledger, events, self.total, folder / "publish.log")
            undo.callback(self.feed.end)
            began = time.monotonic()
            self.come_and_go()
            self.lose_the_database()
            self.feed.finish()
            self.drained()
            self.compared = self.judge(calm, begin, clock, "after the restore")
            self.lose_the_broker(events)
            self.compared += self.judge(calm, begin, clock, "after a broker was lost")
            return self.report(time.monotonic() - began)

    # ---- joining and leaving ----

    def come_and_go(self):
        """One runs at least; a step is taken while records wait to be read."""
        steps = [("+", "ledger-0"), ("+", "ledger-1"), ("+", "ledger-2"), ("-", "ledger-0"), ("-", "ledger-2"),
                 ("+", "ledger-0"), ("-", "ledger-1"), ("+", "ledger-2"), ("+", "ledger-1")]
        self.piece = max(self.total * 6 // 10 // len(steps), 1)
        for sign, name in steps:
            self.feed.allow(self.piece)
            member = self.members[name]
            if sign == "+":
                member.start()
                wait_until(f"{name} has partitions", lambda m=member: self.alive() and "partitions assigned" in m.said(), PATIENCE)
                self.joins += 1
            else:
                member.drain()
                self.leaves += 1
            self.progress()
            say(f"{sign}{name}: {self.read()} of {self.total} records read")

    def alive(self):
        dead = [member for member in self.members.values() if member.process and member.process.returncode is None
                and member.ended_by_itself()]
        if dead:
            raise Failed(dead[0].deaths[-1])
        if not self.feed.is_alive():
            raise Failed(f"publish ended: see {self.feed.log.name}")
        return True

    def read(self):
        return self.ledger.number("SELECT COALESCE(sum(next_offset), 0) FROM consumer_offset")

    def progress(self):
        """Whoever runs now has read on: within two sessions, where partitions have to move first."""
        before = self.read()
        if before < self.feed.allowed:
            wait_until("records are read", lambda: self.alive() and self.read() > before, PATIENCE)

    # ---- losing the database ----

    def lose_the_database(self):
        """A dump while all write, more records, then no database but the dump."""
        dump, before = self.folder / "ledger.dump", self.read()
        call(Path(self.ledger.psql).with_name("pg_dump"), "--format=custom", "--no-owner", f"--file={dump}", self.ledger.url)
        self.feed.allow(self.total // 10)
        wait_until("records are read that the dump lacks", lambda: self.alive() and self.read() > before, PATIENCE)
        wait_until("all sent so far is read", lambda: self.alive() and self.read() >= self.feed.allowed, PATIENCE)
        lost = self.read()
        for member in self.members.values():
            member.kill()
        forget_and_restore(self.ledger, dump)
        say(f"dumped at {before} records, lost at {lost}, restored at {self.read()}; {dump.stat().st_size} bytes")
        if self.read() >= lost:
            self.wrong.append("the restored database is not older than the lost one")
        self.expect_verdicts({"fits"}, "the restored database")
        for member in self.members.values():
            member.start()

    # ---- losing the broker ----

    def lose_the_broker(self, events):
        """Another cluster at the same address, first without the topics, then with topics of the same names."""
        for member in self.members.values():
            member.drain()
        self.must_refuse_past_the_end()
        self.ledger.env["GPULEDGER_KAFKA_BOOTSTRAP"] = self.broker.start()
        self.expect_verdicts({"missing"}, "a cluster without the topics")
        self.must_refuse("a cluster without the topics")
        with open(os.devnull, "rb") as nothing:
            subprocess.run([self.ledger.binary, "publish", "-"], env={**os.environ, **self.ledger.env}, stdin=nothing, check=True,
                           stderr=subprocess.DEVNULL)
        self.expect_verdicts({"foreign"}, "another cluster")
        self.must_refuse("another cluster")
        rewound = self.ledger.call("backup", "rewind", "--reason", "the cluster was lost; everything is sent once more")
        say(last_line(rewound))
        audited = self.ledger.number("SELECT count(*) FROM audit_pending WHERE kind = 'offsets.rewound'")
        if not rewound.strip().endswith(f"{audited} of {audited} rewound") or audited == 0:
            self.wrong.append(f"{audited} audit records of offsets that were rewound: {last_line(rewound)}")
        self.feed = Feed(self.ledger, events, self.total, self.folder / "publish-again.log")
        for member in self.members.values():
            member.start()
        self.feed.finish()
        self.drained()
        for member in self.members.values():
            member.drain()

    def must_refuse_past_the_end(self):
        """What a broker that lost records, or a database newer than the broker, looks like."""
        change = "UPDATE consumer_offset SET next_offset = next_offset {} 1000 WHERE next_offset > 0"
        self.ledger.sql(change.format("+"))
        self.expect_verdicts({"past_the_end"}, "a database that is ahead", also={"fits"})
        self.must_refuse("a database that is ahead")
        self.ledger.sql(change.format("-"))

    def expect_verdicts(self, wanted, what, also=frozenset()):
        done = subprocess.run([self.ledger.binary, "backup", "check", "--format", "json"], env={**os.environ, **self.ledger.env},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        rows = json.loads(done.stdout)["rows"] if done.stdout.strip() else []
        found = {row["verdict"] for row in rows}
        if not (wanted <= found <= wanted | set(also)) or done.returncode != (0 if wanted == {"fits"} else 1):
            self.wrong.append(f"backup check of {what}: exit {done.returncode}, {sorted(found)} instead of {sorted(wanted)}; {done.stderr[-300:]}")

    def must_refuse(self, what):
        """`serve` ends by itself, says why, and has made nothing."""
        before = self.read()
        done = subprocess.run([self.ledger.binary, "serve", "--only", "ledger"],
                              env={**os.environ, **self.ledger.env, "GPULEDGER_KAFKA_INSTANCE": "ledger-9", "GPULEDGER_ADMIN_BIND": "127.0.0.1:0"},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
        said = done.stdout + done.stderr
        if done.returncode == 0 or REFUSED not in said or self.read() != before:
            self.wrong.append(f"serve on {what}: exit {done.returncode}, {said.strip()[-400:]}")
        self.refusals += 1

    # ---- the end ----

    def drained(self):
        def done():
            return self.alive() and self.read() >= self.total and self.ledger.number("SELECT (SELECT count(*) FROM touched) + (SELECT count(*) FROM unsettled)") == 0

        wait_until("the topics are read to their end", done, 10 * PATIENCE, every=1)
        # The last hour is not over, and is packed by itself only after a while.
        self.ledger.call("replay", os.devnull)

    def judge(self, calm, begin, clock, when):
        compared, different, counts = compare.differences(self.ledger, calm, begin, clock)
        self.wrong += [f"{when}: {line}" for line in different]
        if counts["fact"] != self.options.facts:
            self.wrong.append(f"{when}: {counts['fact']} facts, want {self.options.facts}")
        try:
            say(f"{when}: {self.ledger.call('ledger', 'verify').strip().splitlines()[-1]}")
        except Failed as e:
            self.wrong.append(f"{when}: {e}")
        return compared

    def report(self, took):
        self.wrong += [death for member in self.members.values() for death in member.deaths]
        for line in self.wrong:
            say(f"WRONG: {line}")
        print(f"RESULT scale joins={self.joins} leaves={self.leaves} restores=1 brokers_lost=1 refusals={self.refusals} facts={self.options.facts} "
              f"windows={self.options.windows} compared={self.compared} seconds={took:.0f} equal={'yes' if not self.wrong else 'no'}", flush=True)
        return not self.wrong


def forget_and_restore(ledger, dump):
    """Drops the database and restores the dump into an empty one; the archive of closed files is where it was."""
    call(LOCAL / "postgres.sh", "drop-db", env=ledger.env)
    ledger.url = last_line(call(LOCAL / "postgres.sh", "fresh-db"))
    ledger.env |= {"DATABASE_URL": ledger.url, "GPULEDGER_DATABASE_URL": ledger.url}
    call(Path(ledger.psql).with_name("pg_restore"), "--no-owner", "--exit-on-error", f"--dbname={ledger.url}", dump)


def arguments():
    parser = argparse.ArgumentParser(prog="tests/chaos/scale.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, full in (("facts", 20_000), ("windows", 100_000), ("seed", 7)):
        parser.add_argument(f"--{name}", type=int, default=full)
    parser.add_argument("--share", action="store_true", help="1,500 facts, 6,000 windows")
    parser.add_argument("--binary", type=Path, default=ROOT / "target" / "debug" / "gpuledger")
    options = parser.parse_args()
    options.binary = options.binary.resolve()
    if options.share:
        options.facts, options.windows = 1_500, 6_000
    return options


def main():
    options = arguments()
    STATE.mkdir(parents=True, exist_ok=True)
    with open(STATE / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = Path(tempfile.mkdtemp(prefix="scale-", dir=STATE))
        # Settings of the user's own say nothing here.
        for name in [name for name in os.environ if name.startswith("GPULEDGER_")]:
            del os.environ[name]
        os.chdir(folder)
        try:
            equal = Scale(options, folder).go()
        except Failed as e:
            say(f"WRONG: {e}")
            equal = False
        if equal:
            shutil.rmtree(folder)
        else:
            say(f"logs are in {folder}")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
