"""The bar of bad input: each bad line is named, parked or found, and the good ones around it count."""
import json
from decimal import Decimal

from frame import Short, bar
from product import fresh_ledger, scratch

GPU = "GPU-aaaaaaaa-0000-0000-0000-000000000001"
DAY = "2026-10-01T"
AS_OF, NOW = "2026-10-02T00:00:00Z", "2026-10-03T00:00:00Z"
SPAN = ("--from", "2026-10-01T00:00:00Z", "--to", AS_OF)
TENANT = "kind: Tenant\nid: acme\nname: Acme\ntime_zone: UTC\ncurrency: EUR\n"


def event(name, kind, hour, data):
    return {"specversion": "1.0", "id": name, "source": "/test/hostile", "type": f"gpuledger.{kind}.v1",
            "time": f"{DAY}{hour}:00Z", "data": data}


def grant(name, hour, allocation, tenant="acme", gpu=GPU, **more):
    return event(name, "allocation.granted", hour, {"allocation": allocation, "tenant": tenant, "units": [{"gpu": gpu}],
                                                    "mode": "exclusive", "class": "on_demand", **more})


def release(name, hour, allocation):
    return event(name, "allocation.released", hour, {"allocation": allocation})


def inventory(name, node, gpu, memory=85520809984):
    return event(name, "node.inventory", "00:00", {"node": node, "boot_id": "b", "gpus": [
        {"uuid": gpu, "index": 0, "model": "NVIDIA H100 80GB HBM3", "memory_bytes": memory, "compute_slices": 7,
         "memory_slices": 8, "mig": False, "state": "ok", "instances": []}]})


def text(value):
    return json.dumps(value)


def bad_lines():
    """(what it is, line, words that must turn up where it is reported; none: its line number must)"""
    odd = "GPU-bbbbbbbb-0000-0000-0000-00000000000"
    yield "truncated line", text(grant("truncated", "02:00", "x-1"))[:-30], ""
    yield "wrong type", text(grant("wrong-type", "02:00", "x-2", units="GPU")), "wrong-type"
    yield "negative number", text(inventory("negative", "n2", odd + "2", -1)), "negative"
    yield "huge number", text(inventory("huge", "n3", odd + "3", 10**40)), "huge"
    yield "NaN", text(inventory("nan", "n4", odd + "4", float("nan"))), ""
    yield "year 9999", text(grant("far", "02:00", "x-3") | {"time": "9999-12-31T23:59:59Z"}), "far"
    yield "duplicate keys", text(release("twice", "02:00", "x-4")).replace('"allocation":', '"allocation": "a-1", "allocation":'), "twice"
    yield "10 MB line", text(grant("long", "02:00", "x-5", labels={"a": "b" * 10_000_000})), ""
    yield "unknown GPU", text(grant("unknown-gpu", "02:00", "x-6", gpu=odd + "9")), "waiting x-6"
    yield "unknown tenant", text(grant("unknown-tenant", "20:00", "x-7", tenant="nobody")), "unknown_tenant nobody"
    yield "release without grant", text(release("no-grant", "02:00", "x-8")), "release_without_grant x-8"
    yield "conflict on one id", text(grant("good-grant", "02:00", "x-9")), "conflict good-grant"


def write(path):
    """Good lines around the bad ones; returns what must be reported, by line number."""
    backwards = [text(grant("late-start", "09:00", "x-10", gpu="GPU-aaaaaaaa-0000-0000-0000-000000000002")),
                 text(release("early-end", "08:00", "x-10"))]
    bad = list(bad_lines())
    lines = [text(inventory("good-inventory", "n1", GPU)), text(grant("good-grant", "01:00", "a-1"))]
    wanted = {len(lines) + n: (what, words) for n, (what, _, words) in enumerate(bad, 1)}
    lines += [line for _, line, _ in bad] + backwards + [text(release("good-release", "03:00", "a-1"))]
    wanted[len(lines) - 1] = ("end before start", "end_before_start x-10")
    path.write_text("\n".join(lines) + "\n")
    return wanted


@bar("bad-input", "each bad line gives a message, a finding or a parked row; the rest goes on")
def bad_input():
    with scratch() as folder, fresh_ledger() as ledger:
        tenants, file = folder / "tenants.yaml", folder / "hostile.ndjson"
        tenants.write_text(TENANT)
        ledger.call("apply", "-f", tenants)
        wanted = write(file)
        done = ledger.call("replay", file, "--as-of", AS_OF, "--now", NOW)
        reported = done.stderr + ledger.bytes_of("parked", "list", "--format", "json")
        reported += ledger.bytes_of("findings", "--as-of", AS_OF, "--format", "json")
        silent = [what for line, (what, words) in wanted.items() if not seen(reported, line, words.split())]
        if silent:
            raise Short(f"nothing is said of: {', '.join(silent)}")
        rows = ledger.rows("usage", *SPAN, "--tenant", "acme", "--group-by", "allocation")
        good = {row["allocation"]: Decimal(row["unit_seconds"]) for row in rows}
        if good.get("a-1") != 7200:
            raise Short(f"the good allocation has {good.get('a-1')} instead of 7200 unit-seconds")
        ledger.call("ledger", "verify")
        return f"{len(wanted)} of {len(wanted)} named; the good allocation is exact, the ledger verifies"


def seen(reported, line, words):
    """By its number, or by the words that name it."""
    return f"hostile.ndjson:{line}" in reported or f"line {line}" in reported or (words and all(w in reported for w in words))
