"""Bars of residue: each missing scrub is found and none is invented; quarantine is ordered once; who was there before, and the evidence of a period."""
import json
import os
import random
import subprocess
import time
import uuid

from frame import Short, bar
from product import BINARY, LOCAL, fresh_ledger, last_line, run, scratch
from suites import suite

GPU = "GPU-aaaaaaaa-0000-0000-0000-000000000001"
DAY = "2026-10-01"
NOW = f"{DAY}T02:00:00Z"
BYTES = 85_520_809_984
ENFORCE = {"kind": "Residue", "id": "default", "gpus": "*", "mode": "enforce"}


def at(minute, second=0):
    return f"{DAY}T{minute // 60:02}:{minute % 60:02}:{second:02}Z"


def event(number, source, kind, time, data):
    return {"specversion": "1.0", "id": f"e-{number}", "source": source, "type": f"gpuledger.{kind}.v1", "time": time, "data": data}


def scrub(name, start, end, result="passed", **more):
    return {"scrub": name, "gpu": GPU, "started_at": at(start), "result": result, "class": "clear", "steps": [],
            "tool": {"name": "t", "version": "1", "digest": "sha256:0"}, "platform": {"driver": "580"},
            "coverage": {"bytes_total": BYTES, "bytes_covered": BYTES, "bytes_reserved": 0},
            "verification": {"method": "full", "bytes_read": BYTES, "mismatches": 0}, "operator": "agent", **more}, at(end)


def story():
    """acme, then bolt without a scrub, then a scrub that fails, then one that passes, then cora."""
    gpu = {"uuid": GPU, "index": 0, "model": "NVIDIA H100 80GB HBM3", "memory_bytes": BYTES, "compute_slices": 7, "memory_slices": 8,
           "mig": False, "state": "ok", "instances": []}
    said = [("/nodes/n1/collector", "node.inventory", at(0), {"node": "n1", "boot_id": "b1", "gpus": [gpu]})]
    for allocation, tenant, start, end in [("a-1", "acme", 1, 5), ("a-2", "bolt", 7, 10), ("a-3", "cora", 30, 40)]:
        units = {"units": [{"gpu": GPU}], "mode": "exclusive", "class": "on_demand"}
        said.append(("/allocators/s", "allocation.granted", at(start), {"allocation": allocation, "tenant": tenant, **units}))
        said.append(("/allocators/s", "allocation.released", at(end), {"allocation": allocation}))
    for data, end in [scrub("s-1", 11, 12, "failed"), scrub("s-2", 13, 15)]:
        said.append(("/nodes/n1/scrubber", "scrub.finished", end, data))
    return [event(number, source, kind, time, data) for number, (source, kind, time, data) in enumerate(said)]


def replay(ledger, folder, events, as_of, now=NOW):
    path = folder / "events.ndjson"
    path.write_text("".join(json.dumps(one) + "\n" for one in events))
    ledger.call("replay", path, "--now", now, "--as-of", as_of)


def apply(ledger, folder, *objects):
    path = folder / "objects.yaml"
    path.write_text("\n---\n".join(json.dumps(one) for one in objects))
    ledger.call("apply", "-f", path)


def signals(ledger):
    return sorted((row["action"], json.loads(row["cause"])[0], row["state"]) for row in ledger.rows("signals", "list"))


def findings(ledger, *kinds):
    found = json.loads(ledger.bytes_of("findings", "--format", "json"))["findings"]
    return sorted((row["kind"], row["subject"]) for row in found if row["kind"] in kinds)


@bar("residue-layouts", "all legal MIG layouts times all next layouts on an 8-slice part, scrubs left out at random: each missing one found, none invented")
def layouts():
    return suite("gpuledger-cases", "layouts::", target="it", figure=r"layouts=.*")


@bar("residue-rules", "R-1 to R-5 by example, and random histories against a second evaluator")
def rules():
    return suite("gpuledger-domain", "residue::", target="lib")


@bar("residue-order", "findings of residue in order, shuffled with doubles, and backwards: the same bytes")
def order():
    events = story()
    shuffled = events + random.Random(7).sample(events, len(events) // 2)
    random.Random(11).shuffle(shuffled)
    seen = set()
    for one in (events, shuffled, events[::-1]):
        with fresh_ledger() as ledger, scratch() as folder:
            replay(ledger, folder, one, at(50))
            seen.add(ledger.bytes_of("findings", "--format", "json"))
            found = findings(ledger, "residue_violation", "scrub_failed")
            if found != [("residue_violation", "a-2"), ("scrub_failed", GPU)]:
                raise Short(str(found))
    if len(seen) != 1:
        raise Short(f"{len(seen)} different answers")
    return "3 orders, one answer"


@bar("residue-enforce", "quarantine ordered once for each cause however often its facts come, withdrawn by a late scrub, nothing where observed")
def enforce():
    events = story()
    with fresh_ledger() as ledger, scratch() as folder:
        replay(ledger, folder, events[:5], at(10))
        if signals(ledger):
            raise Short("a set that observes ordered something")
        apply(ledger, folder, ENFORCE)
        first = signals(ledger)
        for batch in (events[:5], events[:7], events[::-1][2:]):
            replay(ledger, folder, batch, at(10))
        if first != [("quarantine", "violation", "raised")] or signals(ledger) != first:
            raise Short(f"{first}, then {signals(ledger)}")
        # A scrub between acme and bolt that was on its way: nothing was wrong.
        data, end = scrub("s-0", 5, 6)
        replay(ledger, folder, [event(99, "/nodes/n1/scrubber", "scrub.finished", end, data)], at(10))
        if signals(ledger) != [("quarantine", "violation", "withdrawn")] or findings(ledger, "residue_violation"):
            raise Short(f"after a late scrub: {signals(ledger)}")
        replay(ledger, folder, [one for one in events if one["data"].get("scrub") == "s-1"], at(12))
        states = signals(ledger)
        if ("quarantine", "scrub", "raised") not in states:
            raise Short(f"after a failed scrub: {states}")
        ack = event(100, "/allocators/s", "signal.acknowledged", at(13), {
            "signal": next(row["signal"] for row in ledger.rows("signals", "list") if row["state"] == "raised"), "outcome": "effected"})
        replay(ledger, folder, [ack], at(13))
        if ("quarantine", "scrub", "effected") not in signals(ledger):
            raise Short(f"after an answer: {signals(ledger)}")
        return f"{len(states)} signals of 2 causes"


@bar("residue-signal", "a quarantine goes from the outbox to Kafka, once it has settled and under its own id; a restart sends nothing twice")
def signal():
    bootstrap = os.environ.get("KAFKA_BOOTSTRAP") or last_line(run(LOCAL / "kafka.sh", "start").stdout)
    with fresh_ledger() as ledger, scratch() as folder:
        ledger.env.update({
            "KAFKA_BOOTSTRAP": bootstrap, "GPULEDGER_KAFKA_TOPIC_PREFIX": f"residue-{uuid.uuid4().hex[:8]}.",
            "GPULEDGER_KAFKA_GROUP": f"residue-{uuid.uuid4().hex[:8]}", "GPULEDGER_ADMIN_BIND": "127.0.0.1:0"})
        apply(ledger, folder, {**ENFORCE, "settle": "0s"})
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        if now < NOW:
            raise Short(f"this machine's clock says {now}")
        replay(ledger, folder, story()[:5], at(10), now)
        if signals(ledger) != [("quarantine", "violation", "raised")]:
            raise Short(str(signals(ledger)))
        for _ in range(2):
            served(ledger, folder, lambda: signals(ledger) == [("quarantine", "violation", "published")] and said(ledger))
        row = ledger.rows("signals", "list")[0]
        events = said(ledger)
        if row["attempts"] != "1" or [(one["id"], one["data"]["action"]) for one in events] != [(row["signal"], "quarantine")]:
            raise Short(f"{row['attempts']} attempts, {events}")
        return "1 signal, 1 attempt, read back from its topic"


def said(ledger):
    """Signals that came back through the topic and were accepted as facts."""
    lines = ledger.bytes_of("export", "events").splitlines()
    return [one for one in map(json.loads, lines) if one["type"] == "gpuledger.signal.raised.v1"]


def served(ledger, folder, done):
    """Runs the ledger's service until something holds, and a little longer."""
    with open(folder / "serve.log", "a") as log:
        process = subprocess.Popen([str(BINARY), "serve", "--only", "ledger"], env={**os.environ, **ledger.env}, stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=subprocess.STDOUT)
        try:
            deadline = time.monotonic() + 120
            while not done():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise Short(f"{signals(ledger)}: {last_line((folder / 'serve.log').read_text())}")
                time.sleep(0.5)
            time.sleep(2)
        finally:
            process.terminate()
            process.wait(60)


@bar("residue-report", "who was there before and after, the proof between, others nameless to a tenant; a pack with every release")
def report():
    with fresh_ledger() as ledger, scratch() as folder:
        replay(ledger, folder, story(), at(50))
        rows = ledger.rows("residue", "report", "--gpu", GPU, "--slice", "3", "--at", at(20))
        row = rows[0]
        if (row["before"]["allocation"], row["after"]["allocation"], row["verdict"]) != ("a-2", "a-3", "clean"):
            raise Short(str(row))
        if [scrub["scrub"] for scrub in row["scrubs"]] != ["s-1", "s-2"]:
            raise Short(str(row["scrubs"]))
        told = ledger.bytes_of("residue", "report", "--allocation", "a-3", "--tenant", "cora", "--format", "json")
        if "bolt" in str(told) or "a-2" in str(told) or "another tenant" not in str(told):
            raise Short("a tenant reads another's name")
        ledger.call("residue", "pack", "--from", at(0), "--to", at(60), folder / "pack")
        summary = json.loads((folder / "pack/summary.json").read_text())
        figures = {name: summary[name] for name in ("releases", "exceptions", "scrubs")}
        if figures["releases"] != "3" or figures["scrubs"] != "2":
            raise Short(str(figures))
        return str(figures)
