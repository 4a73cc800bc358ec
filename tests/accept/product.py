"""The product under test: the binary, databases of its own, and what lies beside it."""
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from frame import Short, Skipped

ROOT = Path(__file__).resolve().parents[2]
LOCAL = ROOT / "deploy" / "local"
BINARY = ROOT / "target" / "debug" / "gpuledger"
SHARED = Path(os.environ.get("SHARED", ROOT.parent / "shared"))
LONG = 3600


def shared(*parts):
    """A file or folder of the shared input; Skipped where it is absent."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        raise Skipped(f"{path} is not there")
    return path


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""


def run(*words, env=None, timeout=LONG, check=True, stdout=subprocess.PIPE):
    """Runs a command without a terminal; Short with the end of what it said where it fails and `check` is set."""
    try:
        done = subprocess.run([str(w) for w in words], env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
                              stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=timeout, cwd=ROOT)
    except subprocess.TimeoutExpired:
        raise Short(f"`{' '.join(map(str, words[:4]))}` took more than {timeout} s") from None
    if check and done.returncode:
        said = (done.stderr or done.stdout or "").strip()[-400:]
        raise Short(f"`{' '.join(map(str, words[:4]))}` exit {done.returncode}: {said}")
    return done


class Ledger:
    """The binary on a fresh database."""

    def __init__(self, url):
        archive = Path(tempfile.gettempdir()) / f"archive-of-{url.rsplit('/', 1)[-1].partition('?')[0]}"
        self.env = {"DATABASE_URL": url, "GPULEDGER_DATABASE_URL": url, "GPULEDGER_ARCHIVE_URL": str(archive)}

    def call(self, *words, check=True, timeout=LONG):
        return run(BINARY, *words, env=self.env, check=check, timeout=timeout)

    def bytes_of(self, *words):
        return self.call(*words).stdout

    def rows(self, *words):
        return json.loads(self.bytes_of(*words, "--format", "json"))["rows"]


@contextlib.contextmanager
def fresh_ledger():
    """A migrated database, dropped at the end."""
    url = last_line(run(LOCAL / "postgres.sh", "fresh-db").stdout)
    ledger = Ledger(url)
    try:
        ledger.call("migrate")
        yield ledger
    finally:
        run(LOCAL / "postgres.sh", "drop-db", env=ledger.env, check=False)
        shutil.rmtree(ledger.env["GPULEDGER_ARCHIVE_URL"], ignore_errors=True)


@contextlib.contextmanager
def scratch():
    with tempfile.TemporaryDirectory(prefix="accept-") as folder:
        yield Path(folder)


def imported(folder, kind, path, *options):
    """The events of a public file, as NDJSON in the folder."""
    events = folder / f"{kind}.ndjson"
    with open(events, "w", encoding="utf-8") as out:
        run(BINARY, "import", kind, *options, path, stdout=out)
    if events.stat().st_size == 0:
        raise Short(f"import {kind} gave no events")
    return events
