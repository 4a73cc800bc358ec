"""The audit log: records that wait become leaves of about 400 bytes with salts, timed until the checkpoint that covers them is published, beside a set-based INSERT
of the same bytes, a thousand rows a statement, into a plain table of the same server. Then a proof beside reading one row, and the exported log verified on one core.

    make bench-audit                  a million leaves
    LEAVES=10000000 make bench-audit  as the bar of the proof has it: needs 25 GiB of disk

Last line: RESULT bench-audit key=value …"""
import os
import shutil
import signal
import subprocess
import sys
import time

from stage import PROGRAM, STATE, Database, Failed, build, load, run, say

LEAVES = int(os.environ.get("LEAVES", "1000000"))
SAMPLES = int(os.environ.get("SAMPLES", "2000"))
LIMIT_S = int(os.environ.get("LIMIT_S", "3600"))


class Log:
    """`gpuledger serve --only audit` on a database, with a key of its own."""

    def __init__(self, database):
        self.home = STATE / "audit"
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)
        self.database = database
        self.env = {"DATABASE_URL": database.url, "GPULEDGER_DATABASE_URL": database.url, "GPULEDGER_ADMIN_BIND": "127.0.0.1:0", "NO_COLOR": "1",
                    "GPULEDGER_AUDIT_KEY_FILE": str(self.home / "key"), "GPULEDGER_AUDIT_HEAD_FILE": str(self.home / "head"),
                    "GPULEDGER_AUDIT_KEK_FILE": str(self.home / "kek")}
        run(PROGRAM, "migrate", env=self.env)
        run(PROGRAM, "audit", "key", "kek", env=self.env)
        self.key = run(PROGRAM, "audit", "key", "new", "--origin", "bench.example/audit", env=self.env).strip()

    def publish(self, leaves):
        """Seconds from the start of the process until a published checkpoint covers so many leaves."""
        with open(self.home / "log", "wb") as log:
            began = time.monotonic()
            process = subprocess.Popen([PROGRAM, "serve", "--only", "audit"], env={**os.environ, **self.env}, stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=subprocess.STDOUT)
        try:
            while self.database.number("SELECT COALESCE(max(size), 0) FROM audit_checkpoint") < leaves:
                if process.poll() is not None or time.monotonic() - began > LIMIT_S:
                    raise Failed(f"not published: {(self.home / 'log').read_text(errors='replace')[-1500:]}")
                time.sleep(0.05)
            return time.monotonic() - began
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)

    def verify(self):
        """Seconds of one core for the whole exported log: signature, tiles and root; and with what leaves say."""
        folder = self.home / "export"
        run(PROGRAM, "audit", "export", folder, env=self.env)
        core, times = str(min(os.sched_getaffinity(0))), []
        for words in (["--hashes-only"], []):
            began = time.monotonic()
            said = run("taskset", "-c", core, PROGRAM, "audit", "verify", folder, "--key", self.key, *words, env=self.env)
            times.append(time.monotonic() - began)
        say(said.strip().splitlines()[0])
        return times

    def end(self):
        shutil.rmtree(self.home, ignore_errors=True)


def main():
    build()
    database = Database()
    try:
        log = Log(database)
        try:
            return measure(database, log)
        finally:
            log.end()
    finally:
        database.drop()


def measure(database, log):
    database.check_logged()
    load("audit-fill", "--url", database.url, "--leaves", LEAVES)
    database.sql("VACUUM ANALYZE audit_pending, audit_queue")
    database.sql("CHECKPOINT")
    took = log.publish(LEAVES)
    wrong = database.number("SELECT count(*) FROM audit_queue") + abs(database.number(
        f"SELECT count(*) - {LEAVES} FROM audit_leaf WHERE pending_seq IS NOT NULL"))
    if wrong:
        raise Failed(f"{wrong} records have no leaf, or two")
    database.sql("CHECKPOINT")
    inserted = load("audit-insert", "--url", database.url, "--leaves", LEAVES)
    say(f"a leaf has {inserted['mean_bytes']} bytes; published after {took:.1f} s, inserted in {int(inserted['took_us']) / 1e6:.1f} s")
    database.sql("DROP TABLE inserted")
    latency = load("audit-latency", "--url", database.url, "--samples", SAMPLES)
    say(f"of {SAMPLES} samples, 99th percentile: a proof {latency['proof_p99_us']} us, a row {latency['row_p99_us']} us")
    hashed, reviewed = log.verify()
    leaves_rate, insert_rate = LEAVES / took, LEAVES / (int(inserted["took_us"]) / 1e6)
    print(f"RESULT bench-audit leaves_per_second={leaves_rate:.0f} insert_rows_per_second={insert_rate:.0f} ratio={leaves_rate / insert_rate:.2f} "
          f"prove_p99_over_select_p99={int(latency['proof_p99_us']) / max(1, int(latency['row_p99_us'])):.1f} verify_leaves_per_second={LEAVES / hashed:.0f} "
          f"review_leaves_per_second={LEAVES / reviewed:.0f} leaves={LEAVES} leaf_bytes={inserted['mean_bytes']}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as e:
        print(f"bench-audit: {e}", file=sys.stderr)
        sys.exit(1)
