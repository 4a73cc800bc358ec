"""Bars on public traces: exact totals, whatever the order, repetition or way in."""
import functools
import json
import random
import subprocess
import time
import uuid
from decimal import Decimal

import product
from frame import Short, bar
from product import BINARY, LOCAL, fresh_ledger, imported, last_line, run, scratch, shared

OPENB = ("--from", "2023-01-01T00:00:00Z", "--to", "2023-07-01T00:00:00Z")
AS_OF = "2023-07-01T00:00:00Z"
NOW = "2026-10-01T00:00:00Z"
GROUPS = ("tenant", "label.gpu_spec", "label.qos")
SEED = 20261001


def openb_pods():
    return shared("data", "openb-v2023", "openb_pod_list_gpuspec33.csv")


@functools.cache
def openb_expected():
    return json.loads(shared("data", "openb-v2023", "expected.json").read_text())


def answers(ledger):
    """What `usage` says by each key, as bytes."""
    return {by: ledger.bytes_of("usage", *OPENB, "--as-of", AS_OF, "--group-by", by, "--format", "json") for by in GROUPS}


def replayed(*files):
    """The answers after the replay of the files, one after the other."""
    with fresh_ledger() as ledger:
        for file in files:
            ledger.call("replay", file, "--as-of", AS_OF, "--now", NOW)
        said = answers(ledger)
        ledger.call("ledger", "verify")
        return said


@functools.cache
def openb_answers():
    with scratch() as folder:
        return replayed(imported(folder, "openb", openb_pods()))


def seconds_by(key):
    """unit-seconds by a group key, zero rows left out."""
    rows = json.loads(openb_answers()[key])["rows"]
    found = {row[key]: Decimal(row["unit_seconds"]) for row in rows}
    return {k: v for k, v in found.items() if v}


def milli(numbers):
    """Milli-GPU-seconds of the expectation as unit-seconds, zeros left out."""
    return {k: Decimal(v) / 1000 for k, v in numbers.items() if v}


def same(found, expected):
    """How many groups agree; Short with the first that does not."""
    for key in sorted({*found, *expected}):
        if found.get(key) != expected.get(key):
            raise Short(f"{key}: {found.get(key)} instead of {expected.get(key)}")
    return f"{len(expected)} groups equal, {sum(expected.values()):,} unit-seconds"


@bar("openb-total", "185,294,426.970 unit-seconds in all, by each grouping")
def openb_total():
    wanted = Decimal(openb_expected()["totals"]["mgpu_s"]) / 1000
    for key in GROUPS:
        total = sum(seconds_by(key).values())
        if total != wanted:
            raise Short(f"{total:,} by {key} instead of {wanted:,}")
    return f"{wanted:,} unit-seconds"


@bar("openb-gpu-spec", "usage by gpu_spec as expected.json says")
def openb_gpu_spec():
    return same(seconds_by("label.gpu_spec"), milli(openb_expected()["mgpu_s_by_gpu_spec"]))


@bar("openb-qos", "usage by qos as expected.json says")
def openb_qos():
    return same(seconds_by("label.qos"), milli(openb_expected()["mgpu_s_by_qos"]))


@bar("openb-tenant", "usage by tenant as expected.json says")
def openb_tenant():
    found = seconds_by("tenant")
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))[:10]
    same(dict(ranked), milli(dict(openb_expected()["mgpu_s_top10_tenant_shape"])))
    # Shapes without a GPU have allocations in the trace and no usage here.
    shapes = openb_expected()["tenants_by_shape"]
    if len(found) > shapes:
        raise Short(f"{len(found)} tenants, the trace has {shapes}")
    return f"the ten largest equal, {len(found)} tenants with GPU time of {shapes} in the trace"


@bar("openb-any-order", "each fact three times, shuffled, in seven replays: the same bytes")
def openb_any_order():
    with scratch() as folder:
        events = imported(folder, "openb", openb_pods())
        lines = [line for line in events.read_text().splitlines() for _ in range(3)]
        random.Random(SEED).shuffle(lines)
        parts = []
        for n in range(7):
            parts.append(folder / f"part-{n}.ndjson")
            parts[-1].write_text("\n".join(lines[n::7]) + "\n")
        return same_bytes(replayed(*parts), f"{len(lines)} events")


def same_bytes(found, of):
    for key, wanted in openb_answers().items():
        if found[key] != wanted:
            raise Short(f"usage by {key} differs from that of one replay in order")
    size = sum(len(v.encode()) for v in found.values())
    return f"{of}: {size} bytes of JSON, all equal"


@bar("openb-through-kafka", "through Kafka the same bytes as by replay")
def openb_through_kafka():
    wanted = openb_answers()
    with scratch() as folder, fresh_ledger() as ledger:
        events = imported(folder, "openb", openb_pods())
        ledger.env |= {
            "KAFKA_BOOTSTRAP": last_line(run(LOCAL / "kafka.sh", "start").stdout),
            # Topics and group of its own: the broker is shared by all that runs here.
            "GPULEDGER_KAFKA_TOPIC_PREFIX": f"accept-{uuid.uuid4().hex[:12]}.",
            "GPULEDGER_KAFKA_GROUP": f"accept-{uuid.uuid4().hex[:12]}",
        }
        ledger.call("publish", events)
        with consumer(ledger, folder / "serve.log"):
            settle(ledger, wanted, folder / "serve.log")
        return same_bytes(answers(ledger), "published and consumed")


class consumer:
    """`serve --only ledger` in the background."""

    def __init__(self, ledger, log):
        self.ledger, self.log = ledger, log

    def __enter__(self):
        env = {**product.os.environ, **self.ledger.env}
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([str(BINARY), "serve", "--only", "ledger"], env=env, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=subprocess.STDOUT, cwd=self.log.parent)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def settle(ledger, wanted, log, patience=300):
    """Waits until the answer is the wanted one, or time is up: the comparison itself says what differs."""
    key, until = GROUPS[0], time.monotonic() + patience
    while time.monotonic() < until:
        said = ledger.call("usage", *OPENB, "--as-of", AS_OF, "--group-by", key, "--format", "json", check=False)
        if said.returncode == 0 and said.stdout == wanted[key]:
            return
        time.sleep(2)
    print(log.read_text()[-2000:])


@bar("phillips", "1,824,886 GPU-seconds, of which 1,675,774 in 2016")
def phillips():
    dump = shared("data", "slurm-openstack-xdmod", "phillips.log")
    wanted = json.loads(shared("data", "slurm-openstack-xdmod", "expected.json").read_text())["slurm_phillips"]
    totals = wanted["totals"]["gpu_s"], wanted["split_at_new_year"]["gpu_2016"]
    with scratch() as folder, fresh_ledger() as ledger:
        ledger.call("replay", imported(folder, "sacct", dump), "--as-of", AS_OF, "--now", NOW)
        found = tuple(total(ledger, to) for to in ("2018-01-01T00:00:00Z", "2017-01-01T00:00:00Z"))
        ledger.call("ledger", "verify")
    if found != tuple(map(Decimal, totals)):
        raise Short(f"{found[0]} and {found[1]} instead of {totals[0]} and {totals[1]}")
    return f"{found[0]:,} in all, {found[1]:,} in 2016"


def total(ledger, to):
    rows = ledger.rows("usage", "--from", "2016-01-01T00:00:00Z", "--to", to, "--group-by", "tenant")
    return sum((Decimal(row["unit_seconds"]) for row in rows), Decimal(0))
