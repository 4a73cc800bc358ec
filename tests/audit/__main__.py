"""The audit log killed: `serve --only audit` is held at each place between two steps, killed with -9, and started again.

    python tests/audit            all places
    python tests/audit head_renamed
    python tests/audit --share    some places, once each

After each kill: every record has one leaf, indexes are contiguous, no checkpoint shrank or forked, and the exported log verifies against the last checkpoint seen."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "target" / "debug" / "gpuledger"
LOCAL = ROOT / "deploy" / "local"
POINTS = ("leaves_written", "before_leaves", "after_leaves", "before_signing", "before_head", "head_written", "head_synced", "head_renamed",
          "before_publishing", "after_publishing")
# How often a place is passed before the kill: at the first leaf, and with a log in place.
SKIPPED = (0, 2)
SHARE = ("before_leaves", "after_leaves", "head_written", "head_renamed")
HELD = "held at a failpoint"
PATIENCE_S = 60
RECORDS = 700


class Wrong(Exception):
    """The log is not as it must be."""


def last_line(text):
    return text.strip().splitlines()[-1].strip()


def script(*words, env=None):
    return last_line(subprocess.run([LOCAL / "postgres.sh", *words], env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, check=True,
                                    stdout=subprocess.PIPE, text=True).stdout)


class Log:
    def __init__(self, home):
        self.home = Path(home)
        self.url, self.psql = script("fresh-db"), script("psql")
        self.env = {**os.environ, "DATABASE_URL": self.url, "GPULEDGER_DATABASE_URL": self.url, "GPULEDGER_ADMIN_BIND": "127.0.0.1:0", "NO_COLOR": "1",
                    "GPULEDGER_AUDIT_KEY_FILE": str(self.home / "key"), "GPULEDGER_AUDIT_HEAD_FILE": str(self.home / "head")}
        self.call("migrate")
        self.key = self.call("audit", "key", "new", "--origin", "kill.example/audit").strip()
        self.recorded, self.seen = 0, None

    def call(self, *words, code=0):
        done = subprocess.run([PROGRAM, *map(str, words)], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != code:
            raise Wrong(f"`{' '.join(map(str, words))}` exit {done.returncode}: {(done.stderr or done.stdout).strip()[-500:]}")
        return done.stdout

    def sql(self, query):
        return subprocess.run([self.psql, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", self.url, "-c", query], stdin=subprocess.DEVNULL,
                              check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

    def record(self, count):
        body = json.dumps({"data": {"allocation": "a", "tenant": "acme", "units": [{"gpu": "GPU-1"}]}}, separators=(",", ":"))
        self.sql(f"INSERT INTO audit_pending (kind, body, recorded_at_us) SELECT 'gpuledger.allocation.granted.v1', '{body}', 0 FROM generate_series(1, {count})")
        self.recorded += count

    def serve(self, failpoints=""):
        self.out = self.home / "log"
        with open(self.out, "wb") as out:
            return subprocess.Popen([PROGRAM, "serve", "--only", "audit"], env={**self.env, "FAILPOINTS": failpoints}, stdin=subprocess.DEVNULL, stdout=out,
                                    stderr=subprocess.STDOUT)

    def wait(self, process, what, is_so):
        until = time.monotonic() + PATIENCE_S
        while not is_so():
            if process.poll() is not None or time.monotonic() > until:
                raise Wrong(f"not within {PATIENCE_S} s: {what}: {self.out.read_text(errors='replace')[-800:]}")
            time.sleep(0.05)

    def published(self):
        return int(self.sql("SELECT COALESCE(max(size), 0) FROM audit_checkpoint"))

    def kill_at(self, point, skipped):
        """Records are added all the while, so that there is something to do at every place."""
        process = self.serve(f"audit::{point}={skipped}*off->return" if skipped else f"audit::{point}=return")
        try:
            def held():
                if HELD in self.out.read_text(errors="replace"):
                    return True
                self.record(5)
                return False
            self.wait(process, f"held at {point}", held)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()

    def settle(self):
        process = self.serve()
        try:
            done = "SELECT (SELECT count(*) FROM audit_queue) = 0 AND (SELECT max(size) FROM audit_checkpoint) > (SELECT max(leaf_index) FROM audit_leaf)"
            self.wait(process, "everything published", lambda: self.sql(done) == "t")
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)

    def check(self):
        leaves, most, records, distinct = map(int, self.sql(
            "SELECT count(*), COALESCE(max(leaf_index), -1), count(pending_seq), count(DISTINCT pending_seq) FROM audit_leaf").split("|"))
        if leaves != most + 1:
            raise Wrong(f"{leaves} leaves, the last has index {most}")
        if not records == distinct == self.recorded:
            raise Wrong(f"{self.recorded} records, {records} leaves of records, {distinct} different")
        folder = self.home / "export"
        shutil.rmtree(folder, ignore_errors=True)
        self.call("audit", "export", folder)
        words = ["--last", self.seen] if self.seen else []
        self.call("audit", "verify", folder, "--key", self.key, *words)
        seen = self.home / "seen"
        shutil.copy(folder / "checkpoint", seen)
        self.seen = seen
        return leaves

    def end(self):
        subprocess.run([LOCAL / "postgres.sh", "drop-db"], env={**os.environ, "DATABASE_URL": self.url}, stdin=subprocess.DEVNULL, check=True,
                       stdout=subprocess.DEVNULL)


def commands(log):
    """What an auditor does: a proof file, an export with openings, and the same with one thing changed, which ends with 1."""
    proof = log.home / "proof"
    proof.write_text(log.call("audit", "prove", 3))
    said = log.call("audit", "verify", "--bundle", proof, "--key", log.key)
    if "acme" not in said:
        raise Wrong(f"the proof opens no tenant: {said}")
    text = proof.read_text()
    other = subprocess.run([PROGRAM, "audit", "key", "new", "--origin", "kill.example/audit"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True,
                           env={**log.env, "GPULEDGER_AUDIT_KEY_FILE": str(log.home / "key2"), "GPULEDGER_AUDIT_HEAD_FILE": str(log.home / "head2")},
                           text=True, stderr=subprocess.DEVNULL).stdout.strip()
    log.call("audit", "verify", "--bundle", proof, "--key", other, code=1)
    proof.write_text(text.replace("index 3", "index 4"))
    log.call("audit", "verify", "--bundle", proof, "--key", log.key, code=1)
    folder = log.home / "opened"
    log.call("audit", "export", folder, "--openings")
    verify = ("audit", "verify", folder, "--key", log.key, "--last", log.seen)
    log.call(*verify)
    changed = 0
    for file in sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "policy"):
        whole = file.read_bytes()
        # A digit, letter or hash somewhere in the middle: what was signed, what is hashed, what is opened.
        place = len(whole) // 2
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1:])
        log.call(*verify, code=1)
        file.write_bytes(whole)
        changed += 1
    log.call(*verify)
    shutil.rmtree(folder)
    return changed


def main():
    is_share = "--share" in sys.argv
    named = SHARE if is_share else sys.argv[1:]
    points = [point for point in POINTS if not named or point in named]
    with tempfile.TemporaryDirectory() as home:
        log = Log(home)
        log.record(RECORDS)
        kills = leaves = 0
        for skipped in SKIPPED[1:] if is_share else SKIPPED:
            for point in points:
                log.kill_at(point, skipped)
                before = log.published()
                log.settle()
                if log.published() < before:
                    raise Wrong(f"the checkpoint shrank after a kill at {point}")
                leaves = log.check()
                kills += 1
        # A disk that does not sync: nothing is signed, and with the disk back it goes on.
        log.record(10)
        process = log.serve("audit::head_sync=return")
        try:
            log.wait(process, "the failed sync in the log", lambda: "does not sync" in log.out.read_text(errors="replace"))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        log.settle()
        leaves = log.check()
        changed = commands(log)
        log.end()
    print(f"kill: {kills} kills and a failed sync, {leaves} leaves, {log.recorded} records, each with one leaf, every checkpoint extends the last; "
          f"{changed} changed files refused")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Wrong as e:
        print(f"audit: {e}", file=sys.stderr)
        sys.exit(1)
