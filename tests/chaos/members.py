"""The two consumers, and how one of them is killed: from outside, at the place where a failpoint holds it."""
import os
import re
import signal
import subprocess
import time
from pathlib import Path

from place import Failed

HELD = "held at a failpoint"
# What a batch does, in order; up to before-commit its transaction is open.
INSIDE = ["ledger::after-copy", "ledger::after-journals", "ledger::before-offsets", "ledger::before-commit"]
OUTSIDE = ["ledger::after-commit"]
REBALANCE = ["messaging::assign", "messaging::revoke"]
CLEAN_END = 60


class Member:
    """One `serve --only ledger` of the group."""

    def __init__(self, name, ledger, folder):
        self.name, self.ledger = name, ledger
        self.log = Path(folder) / f"{name}.log"
        self.process, self.from_byte, self.deaths = None, 0, []

    def start(self, failpoints=""):
        env = {**os.environ, **self.ledger.env, "GPULEDGER_KAFKA_INSTANCE": self.name, "GPULEDGER_ADMIN_BIND": "127.0.0.1:0",
               "FAILPOINTS": failpoints, "NO_COLOR": "1"}
        with open(self.log, "ab") as log:
            self.from_byte = log.tell()
            self.process = subprocess.Popen([self.ledger.binary, "serve", "--only", "ledger"], env=env, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=subprocess.STDOUT)

    def said(self):
        """What this life of it has said."""
        with open(self.log, "rb") as log:
            log.seek(self.from_byte)
            return log.read().decode(errors="replace")

    def is_held(self):
        return HELD in self.said()

    def ended_by_itself(self):
        """It must not; whoever runs it would start it again, and so does this."""
        if self.process.poll() is None:
            return False
        self.deaths.append(f"{self.name} exit {self.process.returncode}: {self.said().strip()[-300:]}")
        return True

    def open_transactions(self):
        """Transactions that have written and are not committed, of this very process, as the server sees them."""
        ports = own_ports(self.process.pid)
        if not ports:
            return 0
        return self.ledger.number("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction' "
                                  f"AND backend_xid IS NOT NULL AND client_port IN ({','.join(map(str, ports))})")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        if self.process.wait() != -signal.SIGKILL:
            raise Failed(f"{self.name} was not killed: exit {self.process.returncode}")

    def drain(self):
        """A clean end: it finishes its batch, gives its partitions up, and exits 0."""
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(CLEAN_END)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failed(f"{self.name} did not end within {CLEAN_END} s of SIGTERM: {self.said().strip()[-600:]}") from None
        if code != 0:
            raise Failed(f"{self.name} exit {code} after SIGTERM: {self.said().strip()[-600:]}")

    def end(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def own_ports(pid):
    """Local TCP ports of a process (Linux)."""
    inodes = set()
    for handle in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found = re.match(r"socket:\[(\d+)\]", os.readlink(handle))
        except OSError:
            continue
        if found:
            inodes.add(found.group(1))
    ports = set()
    for table in ("tcp", "tcp6"):
        try:
            rows = Path(f"/proc/{pid}/net/{table}").read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            fields = row.split()
            if fields[9] in inodes:
                ports.add(int(fields[1].rsplit(":", 1)[1], 16))
    return ports


def wait_until(what, condition, limit, every=0.1):
    """Waits for a condition; Failed says what did not come."""
    until = time.monotonic() + limit
    while not condition():
        if time.monotonic() > until:
            raise Failed(f"not within {limit} s: {what}")
        time.sleep(every)
