"""Bars of pools (A-10, A-12): parts and idle time equal the unit's time, and the ledger divides them as the weights say."""
import json

from frame import Short, bar
from product import fresh_ledger, scratch

GPU = "GPU-aaaaaaaa-0000-0000-0000-000000000001"
DAY, HOUR_US = "2026-10-01", 3_600_000_000
HOUR = ("--from", f"{DAY}T00:00:00Z", "--to", f"{DAY}T01:00:00Z")
AS_OF, NOW = f"{DAY}T04:00:00Z", "2026-10-02T00:00:00Z"


def pool(**members):
    return json.dumps({"kind": "Pool", "id": "chat", **members})


def at(second):
    return f"{DAY}T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"


class Events:
    """Events of one node with one GPU, in the order they are said."""

    def __init__(self):
        self.lines = []
        gpu = {"uuid": GPU, "index": 0, "model": "Tesla T4", "memory_bytes": 16_000_000_000, "compute_slices": 1,
               "memory_slices": 1, "mig": False, "state": "ok", "instances": []}
        for quarter in range(17):
            self.say("/nodes/n1/collector", "node.inventory", quarter * 900, {"node": "n1", "boot_id": "b1", "gpus": [gpu]})

    def say(self, source, kind, second, data):
        event = {"specversion": "1.0", "id": f"e-{len(self.lines)}", "source": source, "type": f"gpuledger.{kind}.v1",
                 "time": at(second), "data": data}
        self.lines.append(json.dumps(event))

    def grant(self, allocation, tenant, mode="exclusive", **share):
        self.say("/allocators/s", "allocation.granted", 0, {
            "allocation": allocation, "tenant": tenant, "units": [{"gpu": GPU, **share}], "mode": mode, "class": "on_demand",
            "pool": "chat", "runtime": {"slurm_job": allocation}})
        self.say("/allocators/s", "allocation.released", 3600, {"allocation": allocation})

    def work(self, tenant, start, end, tokens, seen=0):
        self.say("/gateways/g", "work.reported", end, {
            "pool": "chat", "tenant": tenant, "start": at(start), "end": at(end), "input_tokens": seen, "output_tokens": tokens})

    def measured(self, readings):
        """An hour of windows with so many SM-active microseconds of each job in each."""
        for n in range(360):
            quality = {"sm_active_us": "interval_mean"}
            processes = [{"gpu": GPU, "pid": 100 + int(job), "started_at": at(0), "slurm_job": job, "sm_active_us": active,
                          "covered_us": 10_000_000, "quality": quality} for job, active in readings.items()]
            self.say("/nodes/n1/collector", "telemetry.window", n * 10 + 10, {
                "node": "n1", "boot_id": "b1", "stream": "s-1", "sequence": n, "start": at(n * 10), "end": at(n * 10 + 10),
                "units": [], "processes": processes, "gaps": []})

    def write(self, folder):
        path = folder / "events.ndjson"
        path.write_text("\n".join(self.lines) + "\n")
        return path


def apply(ledger, folder, text):
    (folder / "pool.yaml").write_text(text)
    ledger.call("apply", "-f", folder / "pool.yaml")


def balance(ledger):
    """Microseconds of the hour by tenant or account; Short where they are not the hour."""
    rows = json.loads(ledger.bytes_of("ledger", "balance", *HOUR, "--format", "json"))["rows"]
    found = {}
    for row in rows:
        whose = row["tenant"] or row["account"]
        found[whose] = found.get(whose, 0) + int(row["memory_slice_us"])
    if sum(found.values()) != HOUR_US:
        raise Short(f"parts and idle add up to {sum(found.values()):,} of {HOUR_US:,} µs")
    return found


def stands(ledger, wanted):
    found = balance(ledger)
    if found != wanted:
        raise Short(f"{found} instead of {wanted}")
    ledger.call("ledger", "verify")


@bar("pools-work", "60,000,000 µs of each minute by weight, whatever the order; another window divides the past anew")
def pools_work():
    events = Events()
    events.grant("1", "op")
    for minute in range(30):
        events.work("acme", minute * 60, minute * 60, minute + 1)
        events.work("bolt", minute * 60 + 30, minute * 60 + 90, 4, seen=minute)
    minutes, weights = {}, {}
    for minute in range(60):
        weights["acme"] = 4 * (minute + 1) if minute < 30 else 0
        # Half of this minute's report, half of the one before, doubled to stay whole.
        weights["bolt"] = sum((16 + m) for m in (minute - 1, minute) if 0 <= m < 30)
        parts = split(60_000_000, {"acme": 2 * weights["acme"], "bolt": weights["bolt"]})
        for tenant, part in (parts or {"op": 60_000_000}).items():
            minutes[tenant] = minutes.get(tenant, 0) + part
    orders = (list, lambda lines: lines[::-1])
    for order in orders:
        with fresh_ledger() as ledger, scratch() as folder:
            apply(ledger, folder, pool(policy="work", weights={"input_tokens": 1, "output_tokens": 4}, window="1m"))
            events.lines = order(events.lines)
            ledger.call("replay", events.write(folder), "--as-of", AS_OF, "--now", NOW)
            stands(ledger, minutes)
            apply(ledger, folder, pool(policy="work", weights={"output_tokens": 1}, window="15m"))
            # Two quarters with work: 120 and 345 of acme's tokens; of bolt's 58 and 60, and 2 that reach into the third.
            wanted = {"op": 900_000_000, "bolt": 900_000_000}
            for acme, bolt in ((120, 58), (345, 60)):
                for tenant, part in split(900_000_000, {"acme": acme, "bolt": bolt}).items():
                    wanted[tenant] = wanted.get(tenant, 0) + part
            stands(ledger, wanted)
    return f"{len(minutes)} accounts of 60 minutes to the microsecond, in {len(orders)} orders"


def split(total, weights):
    """Largest remainder, ties to the smaller name; nothing where nobody weighs anything."""
    weights = {k: w for k, w in weights.items() if w}
    whole = sum(weights.values())
    parts = {k: total * w // whole for k, w in weights.items()}
    by_rest = sorted(weights, key=lambda k: (-(total * weights[k] % whole), k))
    for k in by_rest[:total - sum(parts.values())]:
        parts[k] += 1
    return parts


@bar("pools-measured", "measured time of processes from telemetry, the rest idle, handed out as the pool says")
def pools_measured():
    events = Events()
    events.grant("1", "acme", mode="shared", share="1/2")
    events.grant("2", "bolt", mode="shared", share="1/2")
    late = Events()
    late.lines.clear()
    late.measured({"1": 2_000_000, "2": 1_000_000, "3": 5_000_000})
    wanted = {"provider": {"acme": 720_000_000, "bolt": 360_000_000, "idle": 2_520_000_000},
              "proportional": {"acme": 2_400_000_000, "bolt": 1_200_000_000},
              "even": {"acme": 1_980_000_000, "bolt": 1_620_000_000}}
    with fresh_ledger() as ledger, scratch() as folder:
        apply(ledger, folder, pool(policy="measured"))
        ledger.call("replay", events.write(folder), "--as-of", AS_OF, "--now", NOW)
        stands(ledger, {"idle": HOUR_US})
        ledger.call("replay", late.write(folder), "--as-of", AS_OF, "--now", NOW)
        stands(ledger, wanted["provider"])
        for idle, parts in wanted.items():
            apply(ledger, folder, pool(policy="measured", idle=idle))
            stands(ledger, parts)
    return "telemetry after the hour was posted; provider, proportional and even: parts and idle equal the hour"
