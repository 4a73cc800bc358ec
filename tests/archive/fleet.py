"""A small fleet whose telemetry is known to the microsecond: events as NDJSON, and beside them what they must add up to.

Numbers are drawn by SHA-256 of their names, so that each run, and each machine, has the same ones."""
import hashlib
import json
from collections import Counter, defaultdict
from datetime import datetime, timedelta, timezone

WINDOW_US = 10_000_000
HOUR_US = 3_600_000_000
MODEL = "NVIDIA H100 80GB HBM3"
MEMORY = 85_520_809_984


def micros(text):
    return int(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()) * 1_000_000


def instant(us):
    at = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=us)
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def draw(below, *name):
    """A number below a bound, always the same for the same name."""
    digest = hashlib.sha256("/".join(map(str, name)).encode()).digest()
    return int.from_bytes(digest[:8], "big") % below


def event(kind, source, id, at_us, data):
    return {"specversion": "1.0", "type": f"gpuledger.{kind}.v1", "source": source, "id": id, "time": instant(at_us), "data": data}


def line(one):
    return json.dumps(one, separators=(",", ":"))


class Fleet:
    """Nodes of `gpus` GPUs each, from `start_us` for `hours`; a job on each GPU, which changes at half past."""

    def __init__(self, nodes, gpus, start_us, hours):
        self.nodes = [f"n{n:03}" for n in range(nodes)]
        self.gpus = {node: [f"GPU-{node}-{g}" for g in range(gpus)] for node in self.nodes}
        self.start_us, self.hours = start_us, hours
        self.end_us = start_us + hours * HOUR_US
        # (gpu, owner or None, hour) -> what windows said in all; only readings that were taken.
        self.truth = defaultdict(Counter)
        self.windows = self.gaps = self.gap_us = 0

    def facts(self, inventory_us=HOUR_US // 4):
        """Inventories each quarter of an hour or as told, and jobs of two tenants that follow each other on each GPU."""
        for node in self.nodes:
            listed = [{"uuid": gpu, "index": index, "model": MODEL, "memory_bytes": MEMORY, "compute_slices": 7, "memory_slices": 8,
                       "mig": False, "state": "ok", "instances": []} for index, gpu in enumerate(self.gpus[node])]
            for at in range(self.start_us, self.end_us + 1, inventory_us):
                yield event("node.inventory", f"/nodes/{node}/collector", f"{node}-inventory-{at}", at, {"node": node, "boot_id": "b", "gpus": listed})
            for index, gpu in enumerate(self.gpus[node]):
                for hour in range(self.hours):
                    begin = self.start_us + hour * HOUR_US + HOUR_US // 2
                    job = self.job(gpu, begin)
                    data = {"allocation": f"job-{job}", "tenant": ["acme", "beta"][(index + hour) % 2], "units": [{"gpu": gpu}],
                            "mode": "exclusive", "class": "on_demand", "runtime": {"slurm_job": job}}
                    yield event("allocation.granted", "/allocators/slurm", f"{job}-granted", begin, data)
                    yield event("allocation.released", "/allocators/slurm", f"{job}-released", begin + HOUR_US // 2, {"allocation": f"job-{job}"})

    def job(self, gpu, at_us):
        """The job of a GPU at this time."""
        return f"{gpu}-{(at_us - self.start_us - HOUR_US // 2) // HOUR_US}"

    def telemetry(self, number):
        """The window of every node of this number, and the truth with it."""
        start = self.start_us + number * WINDOW_US
        for node in self.nodes:
            units, processes, gaps = [], [], []
            for gpu in self.gpus[node]:
                unit, process = self.readings(gpu, start, number)
                units.append(unit)
                processes += [process] if process else []
            if draw(50, node, number, "gap") == 0:
                gaps.append({"start": instant(start), "end": instant(start + 2_000_000), "reason": "not_sampled"})
                self.gaps += 1
                self.gap_us += 2_000_000
            self.windows += 1
            data = {"node": node, "boot_id": "b", "stream": f"s-{node}", "sequence": number, "start": instant(start),
                    "end": instant(start + WINDOW_US), "units": units, "processes": processes, "gaps": gaps}
            if draw(20, node, number, "unknown member") == 0:
                # A member that protobuf does not know: such a window stays JSON to the end.
                data["firmware"] = "96.00.89"
            yield event("telemetry.window", f"/nodes/{node}/collector", f"{node}-{number}", start + WINDOW_US, data)

    def readings(self, gpu, start, number):
        """A unit and its process. Now and then a reading is zero, or was not taken, which are two things."""
        hour = start - start % HOUR_US
        unit = {"gpu": gpu, "covered_us": WINDOW_US, "energy_mj": str(3_000_000 + draw(1000, gpu, number, "energy")),
                "memory_byte_us": str((MEMORY // 2 + draw(1000, gpu, number, "memory")) * WINDOW_US),
                "memory_bytes_max": str(MEMORY // 2 + draw(1000, gpu, number, "most")),
                "quality": {"sm_active_us": "interval_mean", "memory_byte_us": "point_gauge", "energy_mj": "driver_counter"}}
        process = {"gpu": gpu, "pid": 4000 + draw(100, gpu), "started_at": instant(self.start_us), "covered_us": WINDOW_US,
                   "quality": {"sm_active_us": "driver_sampled"}}
        kind = draw(10, gpu, number, "kind")
        if kind == 0:
            unit["quality"]["sm_active_us"] = process["quality"]["sm_active_us"] = "unavailable(timed_out)"
        else:
            active = 0 if kind == 1 else draw(WINDOW_US, gpu, number, "sm")
            unit["sm_active_us"] = process["sm_active_us"] = str(active)
        if start >= self.start_us + HOUR_US // 2:
            process["slurm_job"] = self.job(gpu, start)
        else:
            process["container"] = f"c-{gpu}"
        owner = f"job:{process['slurm_job']}" if "slurm_job" in process else f"container:{process['container']}"
        for who, reading in ((None, unit), (owner, process)):
            sums = self.truth[gpu, who, hour]
            sums["covered_us"] += WINDOW_US
            for name in ("sm_active_us", "memory_byte_us", "energy_mj"):
                if name in reading:
                    sums[name] += int(reading[name])
        return unit, process
