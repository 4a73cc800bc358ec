"""Bars of the Azure LLM trace through a pool by tokens: the split function, and the ledger itself, minute by minute."""
import functools
import json
from datetime import datetime, timedelta, timezone
from decimal import Decimal

from frame import Short, bar
from product import fresh_ledger, imported, scratch, shared
from suites import suite

BEGIN = datetime(2023, 11, 16, 18, 15, tzinfo=timezone.utc)
NOW = "2026-10-01T00:00:00Z"
MINUTE_US = 60_000_000
SERVICES = ("code", "conv")
GPU = "GPU-aaaaaaaa-0000-0000-0000-000000000001"
OBJECTS = """kind: Tenant
id: operator
name: Operator
currency: EUR
---
kind: Tenant
id: code
name: Code
currency: EUR
---
kind: Tenant
id: conv
name: Conversation
currency: EUR
---
kind: Pool
id: chat
policy: work
weights: {input_tokens: 1, output_tokens: 4}
window: 1m
idle: provider
"""


@functools.cache
def expected():
    return json.loads(shared("data", "azure-llm-2023", "expected.json").read_text())


def rows():
    """(minute, weight of code, weight of conv) of each minute."""
    return [row[:3] for row in expected()["per_minute_[minute,w_code,w_conv,bill_code,bill_conv]"]]


def split(total, weights):
    """Largest remainder, ties to the first: what the ledger must find, by other code than the ledger's."""
    whole = sum(weights)
    if whole == 0:
        return [0 for _ in weights]
    parts = [total * weight // whole for weight in weights]
    order = sorted(range(len(weights)), key=lambda place: (-(total * weights[place] % whole), place))
    for place in order[:total - sum(parts)]:
        parts[place] += 1
    return parts


def when(minute):
    return (BEGIN + timedelta(minutes=minute)).strftime("%Y-%m-%dT%H:%M:%SZ")


def event(name, kind, minute, data):
    return json.dumps({"specversion": "1.0", "id": name, "source": "/test/azure", "type": f"gpuledger.{kind}.v1", "time": when(minute), "data": data})


def fleet():
    """One GPU, held by the operator for the pool from the first minute to the last; its node is heard every ten minutes."""
    gpu = {"uuid": GPU, "index": 0, "model": "NVIDIA A100-SXM4-80GB", "memory_bytes": 85899345920, "compute_slices": 7, "memory_slices": 8,
           "mig": False, "state": "ok", "instances": []}
    for minute in range(0, 61, 10):
        yield event(f"inventory-{minute}", "node.inventory", minute, {"node": "n1", "boot_id": "b", "gpus": [gpu]})
    yield event("granted", "allocation.granted", 0, {"allocation": "pool-1", "tenant": "operator", "units": [{"gpu": GPU}], "mode": "shared",
                                                     "class": "on_demand", "pool": "chat"})
    yield event("released", "allocation.released", 60, {"allocation": "pool-1"})


@bar("azure-split", "azure-llm: per-minute weights equal expected.json; the split function given 1,000,003 returns its bills to the unit")
def azure_split():
    expected()
    suite("gpuledger-import", "azure_llm_weighs_each_minute_as_published")
    bills = [split(expected()["pool_per_minute"], row[1:]) for row in rows()]
    sums = {service: sum(bill[place] for bill in bills) for place, service in enumerate(SERVICES)}
    if sums != expected()["billed"]:
        raise Short(f"this check's own split gives {sums} instead of {expected()['billed']}")
    return f"{len(bills)} minutes, code {sums['code']:,} and conv {sums['conv']:,} of {sum(sums.values()):,}"


@bar("azure-ledger", "azure-llm: the ledger splits 60,000,000 us a minute by the same weights, and the whole hour would split otherwise")
def azure_ledger():
    with scratch() as folder, fresh_ledger() as ledger:
        (folder / "objects.yaml").write_text(OBJECTS)
        (folder / "fleet.ndjson").write_text("\n".join(fleet()) + "\n")
        ledger.call("apply", "-f", folder / "objects.yaml")
        ledger.call("replay", folder / "fleet.ndjson", "--as-of", when(60), "--now", NOW)
        for service in SERVICES:
            trace = shared("data", "azure-llm-2023", f"AzureLLMInferenceTrace_{service}.csv")
            ledger.call("replay", imported(folder, "azure-llm", trace, "--pool", "chat"), "--as-of", when(60), "--now", NOW)
        sums = [0, 0]
        for minute, *weights in rows():
            found = parts(ledger, minute, minute + 1)
            wanted = split(MINUTE_US, weights)
            if found != [*wanted, MINUTE_US - sum(wanted)]:
                raise Short(f"minute {minute}: {found} us of {SERVICES} and operator instead of {wanted} and the rest")
            sums = [have + more for have, more in zip(sums, wanted)]
        hour = parts(ledger, 0, 60)
        if hour[:2] != sums:
            raise Short(f"the hour has {hour} us, its minutes add up to {sums}")
        ledger.call("ledger", "verify")
    other = split(60 * MINUTE_US, [sum(row[place] for row in rows()) for place in (1, 2)])
    if other == sums:
        raise Short("the window makes no difference: the check looks at nothing")
    return f"60 minutes equal; code {sums[0]:,} us by minutes, {other[0]:,} us were the hour one window"


def parts(ledger, begin, end):
    """Billed microseconds of each service and of the operator."""
    found = {row["tenant"]: Decimal(row["unit_seconds"]) for row in ledger.rows("usage", "--from", when(begin), "--to", when(end))}
    return [int(found.get(tenant, 0) * 1_000_000) for tenant in (*SERVICES, "operator")]
