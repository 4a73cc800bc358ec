"""Where the run takes place: the program, databases of its own, and a broker of its own that may be killed."""
import contextlib
import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCAL = ROOT / "deploy" / "local"
STATE = ROOT / ".local" / "chaos"


class Failed(Exception):
    """The run cannot go on, or what it shows is wrong."""


def call(*words, env=None, stdout=subprocess.PIPE):
    """Runs a command to its end; returns its standard output, raises Failed with the end of its standard error."""
    done = subprocess.run([str(word) for word in words], env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
                          stdout=stdout, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise Failed(f"`{' '.join(map(str, words[:4]))}` exit {done.returncode}: {(done.stderr or done.stdout or '').strip()[-800:]}")
    return done.stdout


def last_line(text):
    return text.strip().splitlines()[-1].strip()


class Broker:
    """A broker with data, ports and scripts of its own, so that nobody else's is killed; KAFKA_BOOTSTRAP is left alone."""

    def __init__(self):
        self.home = STATE / "broker"
        self.script = self.home / "deploy" / "local" / "kafka.sh"
        self.restarts = 0

    def start(self):
        self.script.parent.mkdir(parents=True, exist_ok=True)
        for file in LOCAL.iterdir():
            if file.is_file():
                shutil.copy2(file, self.script.parent / file.name)
        state, jars = self.home / ".local" / "kafka", ROOT / ".local" / "kafka" / "libs"
        state.mkdir(parents=True, exist_ok=True)
        if jars.is_dir() and not (state / "libs").exists():
            (state / "libs").symlink_to(jars)
        self.ask("kill")
        # Only jars leave data here; a container keeps its own, under topics of other runs' prefixes.
        shutil.rmtree(state / "data", ignore_errors=True)
        return last_line(self.ask("start"))

    def crash_and_come_back(self):
        self.ask("restart", "kill")
        self.restarts += 1

    def stop(self):
        self.ask("kill")

    def ask(self, *words):
        clean = {name: value for name, value in os.environ.items() if name != "KAFKA_BOOTSTRAP"}
        # Its output goes to a file of its own: the broker inherits it, and a pipe would stay open as long as the broker runs.
        with open(self.home / "kafka.out", "w+", encoding="utf-8") as out:
            done = subprocess.run(["bash", self.script, *words], env=clean, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
            out.seek(0)
            said = out.read()
        if done.returncode and words[0] != "kill":
            raise Failed(f"kafka.sh {' '.join(words)} exit {done.returncode}: {said[-800:]}")
        return said


class Ledger:
    """The program on a database of its own."""

    def __init__(self, binary, clock, extra=None):
        self.binary = binary
        self.url = last_line(call(LOCAL / "postgres.sh", "fresh-db"))
        self.psql = last_line(call(LOCAL / "postgres.sh", "psql"))
        self.archive = STATE / "archive" / self.url.rsplit("/", 1)[-1].partition("?")[0]
        self.env = {"DATABASE_URL": self.url, "GPULEDGER_DATABASE_URL": self.url, "GPULEDGER_NOW": clock,
                    "GPULEDGER_ARCHIVE_URL": str(self.archive), **(extra or {})}
        self.call("migrate")
        self.call("apply", "-f", Path(__file__).with_name("objects.yaml"))

    def call(self, *words, stdout=subprocess.PIPE):
        return call(self.binary, *words, env=self.env, stdout=stdout)

    def sql(self, query):
        """Rows as lists of text."""
        out = call(self.psql, "-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-d", self.url, "-c", query)
        return [line.split("\t") for line in out.splitlines()]

    def number(self, query):
        return int(self.sql(query)[0][0])

    def drop(self):
        with contextlib.suppress(Failed):
            call(LOCAL / "postgres.sh", "drop-db", env=self.env)
        shutil.rmtree(self.archive, ignore_errors=True)
