"""What the benches of telemetry share: the programs, a broker and a database of their own, the running ledger, and figures of its process."""
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCAL = ROOT / "deploy" / "local"
STATE = ROOT / ".local" / "bench"
RELEASE = ROOT / "target" / "release"
PROGRAM, LOAD = RELEASE / "gpuledger", RELEASE / "examples" / "load"
# A server that may forget what it committed is no measure of one that may not.
DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
# What the client of the database says behind the rows of a question.
END = "-- that is all --"
SHOWN = ("server_version", "shared_buffers", "max_wal_size", "wal_level", "wal_compression", "checkpoint_timeout")


class Failed(Exception):
    """The bench cannot go on, or what it found is wrong."""


def say(text):
    print(f"{Path(sys.argv[0]).stem}: {text}", flush=True)


def run(*words, env=None):
    """Runs a command to its end; its standard output, or Failed with the end of what it said."""
    done = subprocess.run([str(word) for word in words], env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise Failed(f"`{' '.join(map(str, words[:3]))}` exit {done.returncode}: {(done.stderr or done.stdout).strip()[-800:]}")
    return done.stdout


def last_line(text):
    return text.strip().splitlines()[-1].strip()


def build():
    """Builds both programs, unless BUILT=1 says that they are."""
    if os.environ.get("BUILT") == "1":
        return
    # In one call: alone, the load has other features of the libraries, and they would be built twice.
    subprocess.run(["cargo", "build", "--locked", "--release", "-p", "gpuledger", "-p", "gpuledger-tests", "--bin", "gpuledger", "--example", "load"],
                   cwd=ROOT, check=True)


def load(*words):
    """Runs the load; what it said, by name."""
    return dict(line.split("=", 1) for line in run(LOAD, *words).splitlines() if "=" in line)


class Broker:
    """A broker of the bench's own, on an empty folder: its data go when the bench ends."""

    def __init__(self):
        self.home = STATE / "broker"
        self.script = self.home / "deploy" / "local" / "kafka.sh"

    def start(self):
        self.script.parent.mkdir(parents=True, exist_ok=True)
        for file in LOCAL.iterdir():
            if file.is_file():
                shutil.copy2(file, self.script.parent / file.name)
        state, jars = self.home / ".local" / "kafka", ROOT / ".local" / "kafka" / "libs"
        state.mkdir(parents=True, exist_ok=True)
        if jars.is_dir() and not (state / "libs").exists():
            (state / "libs").symlink_to(jars)
        self.stop()
        return last_line(self.ask("start"))

    def stop(self):
        self.ask("kill")
        shutil.rmtree(self.home / ".local" / "kafka" / "data", ignore_errors=True)

    def ask(self, word):
        clean = {name: value for name, value in os.environ.items() if name != "KAFKA_BOOTSTRAP"}
        # A file of its own: the broker inherits it, and a pipe would stay open as long as the broker runs.
        with open(self.home / "kafka.out", "w+", encoding="utf-8") as out:
            done = subprocess.run(["bash", self.script, word], env=clean, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
            out.seek(0)
            said = out.read()
        if done.returncode and word != "kill":
            raise Failed(f"kafka.sh {word} exit {done.returncode}: {said[-800:]}")
        return said


class Database:
    """A database of the bench's own on a server that does not forget."""

    def __init__(self):
        self.url = last_line(run(LOCAL / "postgres.sh", "fresh-db"))
        self.psql = last_line(run(LOCAL / "postgres.sh", "psql"))
        self.client, self.lock = None, threading.Lock()
        settings = {name: self.sql(f"SHOW {name}")[0][0] for name in (*DURABLE, *SHOWN)}
        say("settings: " + " ".join(f"{name}={value}" for name, value in settings.items()))
        wrong = [f"{name} is {settings[name]}" for name, value in DURABLE.items() if settings[name] != value]
        if wrong:
            self.drop()
            raise Failed(f"refused: {', '.join(wrong)}: a server for tests is no measure")

    def sql(self, query):
        """Rows as lists of text. One client for all questions: a new one each time would cost more than what it asks."""
        with self.lock:
            if self.client is None:
                words = [self.psql, "-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-d", self.url]
                self.client = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.client.stdin.write(f"{query};\n\\echo {END}\n")
            self.client.stdin.flush()
            rows = []
            for line in self.client.stdout:
                if line.rstrip("\n") == END:
                    return rows
                rows.append(line.rstrip("\n").split("\t"))
            raise Failed(f"psql: {self.client.stderr.read().strip()[-800:]}")

    def number(self, query):
        return int(self.sql(query)[0][0] or 0)

    def has_work_left(self):
        """Whether a mark waits to be settled or posted, or a block to be packed."""
        return self.sql("SELECT EXISTS (SELECT FROM touched) OR EXISTS (SELECT FROM unsettled)"
                        " OR EXISTS (SELECT FROM telemetry_block WHERE next_node IS NOT NULL)")[0][0] == "t"

    def check_logged(self):
        """No table is unlogged."""
        unlogged = self.sql("SELECT relname FROM pg_class WHERE relpersistence <> 'p' AND relnamespace = 'public'::REGNAMESPACE")
        if unlogged:
            raise Failed(f"refused: unlogged tables: {unlogged}")

    def drop(self):
        if self.client:
            self.client.stdin.close()
            self.client.wait()
        run(LOCAL / "postgres.sh", "drop-db", env={"DATABASE_URL": self.url})


class Ledger:
    """`gpuledger serve --only ledger`, and what its process uses."""

    def __init__(self, database, bootstrap, prefix, now):
        self.database = database
        self.archive = STATE / "archive"
        self.env = {"DATABASE_URL": database.url, "GPULEDGER_DATABASE_URL": database.url, "GPULEDGER_NOW": now, "GPULEDGER_KAFKA_BOOTSTRAP": bootstrap,
                    "GPULEDGER_KAFKA_TOPIC_PREFIX": prefix, "GPULEDGER_ADMIN_BIND": "127.0.0.1:0", "GPULEDGER_ARCHIVE_URL": str(self.archive),
                    "NO_COLOR": "1"}
        self.process, self.log = None, STATE / "ledger.log"

    def call(self, *words):
        return run(PROGRAM, *words, env=self.env)

    def start(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([PROGRAM, "serve", "--only", "ledger"], env={**os.environ, **self.env}, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=subprocess.STDOUT)

    def join(self):
        """Runs it once on topics without records: a new broker makes the topic of its groups for the first member of one, who asks again only after
        seconds. That is no part of what is measured."""
        self.start()
        wait_until("the group has its partitions", lambda: b"partitions assigned" in self.log.read_bytes(), self, 60)
        self.end()

    def check(self):
        if self.process.poll() is not None:
            raise Failed(f"the ledger ended with {self.process.returncode}: {self.log.read_text(errors='replace')[-1500:]}")

    def cpu_s(self):
        """CPU time of all its threads, those that ended included."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_rss_mib(self):
        return int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text()).group(1)) / 1024

    def end(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.archive, ignore_errors=True)


def read_offsets(database):
    """Records read and committed, by topic without its prefix."""
    rows = database.sql("SELECT substring(topic FROM 'gpuledger.*$'), sum(next_offset) FROM consumer_offset GROUP BY 1")
    return {topic: int(offset) for topic, offset in rows}


def wait_until(what, condition, ledger, limit_s, every_s=0.1):
    until = time.monotonic() + limit_s
    while not condition():
        ledger.check()
        if time.monotonic() > until:
            raise Failed(f"not within {limit_s} s: {what}")
        time.sleep(every_s)


def check_totals(database, truth):
    """Packed hours against what the load counted: each GPU and hour, rows and all sums. Returns how many GPU hours."""
    columns = ("unit_sm_active_us", "unit_memory_byte_us", "unit_covered_us", "sm_active_us", "memory_byte_us", "covered_us")
    sums = ", ".join(f"sum({column})" for column in columns)
    found = database.sql(f"SELECT gpu, hour_us, count(*), {sums} FROM packed_hour GROUP BY gpu, hour_us ORDER BY gpu COLLATE \"C\", hour_us")
    found = sorted(",".join(row) for row in found)
    wanted = Path(truth).read_text().splitlines()
    if found != wanted:
        differ = [pair for pair in zip(found, wanted) if pair[0] != pair[1]][:3]
        raise Failed(f"{len(found)} GPU hours are packed, {len(wanted)} were sent; the first that differ: {differ}")
    return len(wanted)


class Sampler(threading.Thread):
    """Calls a function again and again, on a thread of its own, and keeps what it gave with when."""

    def __init__(self, every_s, sample):
        super().__init__(daemon=True)
        self.every_s, self.sample, self.samples, self.over = every_s, sample, [], threading.Event()

    def run(self):
        while not self.over.wait(self.every_s):
            value = self.sample()
            self.samples.append((time.time(), value))

    def end(self):
        self.over.set()
        self.join()
        return self.samples
