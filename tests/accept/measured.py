"""Bars of measured time: whose it is, what it says against allocations, and that the API says the same as the command line."""
import contextlib
import json
import os
import re
import subprocess
import time
import urllib.request
from datetime import datetime, timedelta

import yaml

from frame import Short, bar
from product import BINARY, ROOT, fresh_ledger, last_line, scratch
from suites import examples, suite

EXAMPLES = ROOT / "tests" / "scenarios" / "ledger"
WINDOW = "from=2026-10-01T00:00:00Z&to=2026-10-02T00:00:00Z"
KINDS = ("unattributed", "foreign_process", "held_after_release", "idle_allocation", "owner_mismatch", "clock_skew", "gap")


@bar("measured-usage", "A-13 and M-8: by process owner, by exclusive holder, shared; zero, not measurable, gap and unknown apart; parts add up")
def measured_usage():
    rules = suite("gpuledger-domain", "measured::", target="lib")
    return f"rules: {rules}; examples: {examples(*EXAMPLES.glob('19[01]-*.yaml'))}"


@bar("reconciliation", "each kind of item 5: opened once, closed when its cause goes, not raised a microsecond below its threshold")
def reconciliation():
    raised = {f["kind"] for f in findings_of("192-findings-of-what-was-measured.yaml")}
    if missing := set(KINDS) - raised:
        raise Short(f"the example does not raise {', '.join(sorted(missing))}")
    rules = suite("gpuledger-domain", "reconcile::", target="lib")
    clocks = suite("gpuledger-storage", "a_clock_is_ahead", target="it")
    return f"{len(KINDS)} kinds; rules: {rules}; clocks: {clocks}; examples: {examples(*EXAMPLES.glob('192-*.yaml'))}"


def findings_of(name):
    with replayed(name) as ledger:
        return json.loads(ledger.bytes_of("findings", "--format", "json"))["findings"]


@contextlib.contextmanager
def replayed(name):
    """A ledger with an example's events, replayed by the example's own clock."""
    doc = yaml.safe_load((EXAMPLES / name).read_text())
    newest = max(datetime.fromisoformat(e["time"].replace("Z", "+00:00")) for e in doc["events"])
    with fresh_ledger() as ledger, scratch() as folder:
        ledger.env["GPULEDGER_NOW"] = (newest + timedelta(days=1)).isoformat()
        (folder / "objects.yaml").write_text("\n---\n".join(map(json.dumps, doc["config"])))
        (folder / "events.ndjson").write_text("".join(json.dumps(e) + "\n" for e in doc["events"]))
        ledger.call("apply", "-f", folder / "objects.yaml")
        ledger.call("replay", folder / "events.ndjson", "--as-of", doc["as_of"])
        yield ledger


class Api:
    """The service over a ledger, with a key of its own."""

    def __init__(self, ledger, folder):
        self.ledger, self.folder = ledger, folder
        ledger.env["GPULEDGER_JWT_KEY_FILE"] = str(folder / "key.pem")
        ledger.env["GPULEDGER_API_BIND"] = ledger.env["GPULEDGER_ADMIN_BIND"] = "127.0.0.1:0"

    def __enter__(self):
        self.log = open(self.folder / "serve.log", "w+")
        self.process = subprocess.Popen([str(BINARY), "serve", "--only", "api"], env={**os.environ, **self.ledger.env},
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)
        self.address = self.until(lambda: re.search(r"^api\s+(http://\S+)", (self.folder / "serve.log").read_text(), re.M)).group(1)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)
        self.log.close()

    def until(self, found, seconds=60):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise Short(f"serve ended: {last_line((self.folder / 'serve.log').read_text())}")
            if answer := found():
                return answer
            time.sleep(0.1)
        raise Short("the service did not come up in time")

    def get(self, path, *claims):
        token = last_line(self.ledger.bytes_of("token", *claims))
        request = urllib.request.Request(self.address + path, headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)


@bar("api-says-the-same", "usage and findings over HTTP equal those of the command line, each tenant's own as in the whole")
def api_says_the_same():
    figures = []
    for name in ("190-measured-by-owner-holder-and-share.yaml", "192-findings-of-what-was-measured.yaml"):
        with replayed(name) as ledger, scratch() as folder, Api(ledger, folder) as api:
            figures.append(same_usage(ledger, api))
            figures.append(same_findings(ledger, api))
    return "; ".join(figures)


def same_usage(ledger, api):
    keys = "tenant,allocation,hour"
    rows = ledger.rows("usage", "--from", "2026-10-01T00:00:00Z", "--to", "2026-10-02T00:00:00Z", "--group-by", keys)
    everyone = api.get(f"/v1/usage?{WINDOW}&group_by={keys}", "--role", "platform")["rows"]
    if everyone != rows:
        raise Short(f"usage differs: {next((a, b) for a, b in zip(everyone, rows) if a != b)}")
    for tenant in sorted({row["tenant"] for row in rows}):
        own = api.get(f"/v1/usage?{WINDOW}&group_by={keys}", "--role", "tenant", "--tenant", tenant)["rows"]
        if own != [row for row in rows if row["tenant"] == tenant]:
            raise Short(f"usage of {tenant} by its own token differs from the whole")
    return f"{len(rows)} rows of usage equal"


def same_findings(ledger, api):
    said = json.loads(ledger.bytes_of("findings", "--format", "json"))["findings"]
    api.until(lambda: api.get("/v1/findings", "--role", "admin")["as_of"])
    listed = api.get("/v1/findings?limit=1000", "--role", "admin")["findings"]
    by_name = lambda found: sorted(found, key=lambda f: (f["kind"], f["subject"]))  # noqa: E731
    if by_name(listed) != by_name(said):
        raise Short("findings over HTTP differ from those of the command line")
    owners = {row["allocation"]: row["tenant"] for row in ledger.rows(
        "usage", "--from", "2026-10-01T00:00:00Z", "--to", "2026-10-02T00:00:00Z", "--group-by", "tenant,allocation")}
    told = 0
    for tenant in sorted(set(owners.values())):
        own = api.get("/v1/findings?limit=1000", "--role", "tenant", "--tenant", tenant)["findings"]
        if wrong := [f for f in own if owners.get(f["subject"], f["subject"]) != tenant]:
            raise Short(f"{tenant} is told {wrong[0]}")
        told += len(own)
    return f"{len(said)} findings equal, {told} told to their tenants"
