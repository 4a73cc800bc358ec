"""The program on a database, a clock and an archive of its own."""
import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCAL = ROOT / "deploy" / "local"
BINARY = Path(os.environ.get("GPULEDGER", ROOT / "target" / "debug" / "gpuledger"))


class Failed(Exception):
    """What was asked of the program did not come out."""


def call(*words, env=None, check=True, stdout=subprocess.PIPE):
    done = subprocess.run([str(w) for w in words], env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, stdout=stdout,
                          stderr=subprocess.PIPE, text=True, cwd=ROOT)
    if check and done.returncode:
        raise Failed(f"`{' '.join(map(str, words[:4]))}` exit {done.returncode}: {(done.stderr or '').strip()[-600:]}")
    return done


def must(what, seen, wanted):
    if seen != wanted:
        raise Failed(f"{what}: {str(seen)[:400]}, expected {str(wanted)[:400]}")


class Ledger:
    def __init__(self, clock):
        self.home = Path(tempfile.mkdtemp(prefix="archive-"))
        self.archive = self.home / "archive"
        self.url = call(LOCAL / "postgres.sh", "fresh-db").stdout.strip().splitlines()[-1]
        self.psql = call(LOCAL / "postgres.sh", "psql").stdout.strip().splitlines()[-1]
        self.clock = clock
        self.call("migrate")

    @property
    def env(self):
        return {"DATABASE_URL": self.url, "GPULEDGER_DATABASE_URL": self.url, "GPULEDGER_NOW": self.clock, "GPULEDGER_ARCHIVE_URL": str(self.archive)}

    def call(self, *words, check=True, env=None):
        return call(BINARY, *words, env={**self.env, **(env or {})}, check=check)

    def start(self, *words, env):
        """The program, for a test that kills it. What it says goes to a file: a pipe may be held by others."""
        self.log = self.home / "log"
        with open(self.log, "w", encoding="utf-8") as log:
            return subprocess.Popen([str(BINARY), *words], env={**os.environ, **self.env, **env}, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def replay(self, lines, name, *options):
        file = self.home / f"{name}.ndjson"
        with open(file, "w", encoding="utf-8") as out:
            out.writelines(one + "\n" for one in lines)
        return self.call("replay", file, *options)

    def sql(self, query):
        """Rows as lists of text."""
        out = call(self.psql, "-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-d", self.url, "-c", query).stdout
        return [line.split("\t") for line in out.splitlines()]

    def close(self):
        with contextlib.suppress(Failed):
            call(LOCAL / "postgres.sh", "drop-db", env=self.env)
        shutil.rmtree(self.home, ignore_errors=True)


@contextlib.contextmanager
def ledger(clock):
    one = Ledger(clock)
    try:
        yield one
    finally:
        one.close()
