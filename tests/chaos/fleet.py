"""A fleet's life as events: what happens to 16 GPUs on 8 nodes, in the order in which it is delivered. Same seed, same bytes.

The order is not that of time: most events come within seconds, some hours late, some before what they belong to (a
release before its grant). Some come twice; some identities come again with another content, which is a conflict. Both
come behind the first of their identity under the same key, so that what stands first is the same on every way in."""
import json
import random
from datetime import datetime, timezone

SECOND, MINUTE, HOUR = 1_000_000, 60_000_000, 3_600_000_000
BEGIN = int(datetime(2026, 10, 1, tzinfo=timezone.utc).timestamp()) * SECOND
NODES, WINDOW = 8, 10 * SECOND
MODEL = {"model": "NVIDIA H100 80GB HBM3", "memory_bytes": 85_520_809_984, "compute_slices": 7, "memory_slices": 8}
# One cutting of a GPU that uses it up: profile, start, size, compute slices.
CUTTING = [("2g.20gb", 0, 2, 2), ("1g.10gb", 2, 1, 1), ("1g.10gb", 3, 1, 1), ("3g.40gb", 4, 4, 3)]
TENANTS = ["acme", "bolt", "cargo", "delta"]
STRANGER = "nobody"  # no such tenant is applied
ALLOCATORS = ["/allocators/slurm-1", "/allocators/k8s-1"]


def when(us):
    """As the product writes it, so that what passes through protobuf comes back as the same bytes."""
    whole = datetime.fromtimestamp(us // SECOND, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    fraction = f".{us % SECOND:06d}".rstrip("0") if us % SECOND else ""
    return f"{whole}{fraction}Z"


def number(value):
    """Above 2^53 as text."""
    return value if value <= 1 << 53 else str(value)


class Event:
    """One event, and when it is delivered."""
    __slots__ = ("at", "due", "kind", "source", "id", "data")

    def __init__(self, at, due, kind, source, name, data):
        self.at, self.due, self.kind, self.source, self.id, self.data = at, due, kind, source, name, data

    def line(self):
        return json.dumps({"specversion": "1.0", "id": self.id, "source": self.source, "type": f"gpuledger.{self.kind}.v1",
                           "time": when(self.at), "data": self.data}, separators=(",", ":"))


class Unit:
    """What is granted: a whole GPU or one of its MIG instances."""

    def __init__(self, node, gpu, cut=None, number=0):
        self.node, self.gpu, self.cut, self.number = node, gpu, cut, number

    def named(self):
        if self.cut is None:
            return {"gpu": self.gpu}
        profile, start, size, _ = self.cut
        return {"gpu": self.gpu, "mig": {"uuid": instance(self.gpu, self.number), "profile": profile,
                                         "placement": {"start": start, "size": size}}}

    def scope(self):
        return {"gpu": self.gpu} if self.cut is None else {"gpu": self.gpu, "placement": {"start": self.cut[1], "size": self.cut[2]}}


def instance(gpu, number):
    return f"MIG-{gpu[4:]}-{number}"


def gpus_of(node):
    """The first GPU of a node is whole, the second is cut."""
    return [f"GPU-{node:08d}-0000-0000-0000-{index:012d}" for index in (0, 1)]


class Fleet:
    """Facts and windows of one seed."""

    def __init__(self, seed, facts, windows):
        self.random = random.Random(seed)
        self.facts, self.windows = facts, windows
        self.span = max(windows // NODES * WINDOW, HOUR)
        self.end = BEGIN + self.span
        self.said = {}

    # ---- when an event comes ----

    def delay(self):
        dice = self.random.random()
        if dice < 0.05:
            return self.random.randrange(MINUTE, max(self.span // 10, 2 * MINUTE))
        return int(self.random.expovariate(1 / (10 * SECOND)))

    def say(self, at, kind, source, data, early=False):
        """An event under the next id of its source. An early one comes before anything of its minute."""
        number = self.said[source] = self.said.get(source, 0) + 1
        due = at - self.random.randrange(MINUTE, 20 * MINUTE) if early else at + self.delay()
        return Event(at, due, kind, source, f"{source.rsplit('/', 1)[1]}-{number}", data)

    # ---- facts ----

    def units(self):
        units = []
        for node in range(NODES):
            whole, cut = gpus_of(node)
            units.append(Unit(node, whole))
            units += [Unit(node, cut, piece, number) for number, piece in enumerate(CUTTING)]
        return units

    def inventory(self, node, at, boot):
        whole, cut = gpus_of(node)
        pieces = [{"uuid": instance(cut, number), "profile": profile, "compute_slices": compute, "gpu_instance_id": number + 1,
                   "compute_instance_id": 0, "placement": {"start": start, "size": size}}
                  for number, (profile, start, size, compute) in enumerate(CUTTING)]
        gpus = [{"uuid": whole, "index": 0, **MODEL, "mig": False, "state": "ok", "instances": []},
                {"uuid": cut, "index": 1, **MODEL, "mig": True, "state": "ok", "instances": pieces}]
        return self.say(at, "node.inventory", f"/nodes/n{node}/collector", {"node": f"n{node}", "boot_id": boot, "gpus": gpus})

    def all_facts(self):
        """Exactly `facts` of different identity, in order of delivery, then doubled ones and conflicts beside them."""
        units = self.units()
        beats = [self.inventory(node, BEGIN + beat * HOUR + node * SECOND, f"b{node}")
                 for node in range(NODES) for beat in range(self.span // HOUR + 1)]
        # A turn of a unit is two facts and a bit; a tenth more than needed is drawn, and the last ones left out.
        turn = max(self.span * len(units) * 2.6 / (self.facts * 1.1), 2 * SECOND)
        lives = [event for number, unit in enumerate(units) for event in self.life(unit, number, turn)]
        lives.sort(key=lambda event: (event.at, event.source, event.id))
        facts = beats + lives[:max(self.facts - len(beats), 0)]
        return facts + self.again(facts)

    def again(self, facts):
        """Repetitions of 2 %, conflicts of 1 %."""
        more = []
        for event in facts:
            dice = self.random.random()
            if dice < 0.02:
                more.append(Event(event.at, event.due + self.delay() + 1, event.kind, event.source, event.id, event.data))
            elif dice < 0.03:
                other = {**event.data, **self.contradiction(event)}
                more.append(Event(event.at, event.due + self.delay() + 1, event.kind, event.source, event.id, other))
        return more

    def contradiction(self, event):
        """Another content under the same key."""
        return {"allocation.granted": {"tenant": "mallory"}, "allocation.transferred": {"tenant": "mallory"},
                "allocation.released": {"reason": "cancelled by mistake"}, "node.inventory": {"boot_id": "other"},
                "unit.state": {"detail": "said twice"}, "scrub.started": {"scrub": "another"},
                "scrub.finished": {"operator": "another"}}[event.kind]

    def life(self, unit, number, turn):
        """One unit's turns: granted, released, now and then shared, transferred, faulty, scrubbed, or released too late or too early."""
        draw, at, count = self.random, BEGIN + self.random.randrange(0, int(turn) + 1), 0
        while at < self.end:
            count += 1
            held = max(int(turn * draw.uniform(0.3, 1.1)), SECOND)
            name = f"u{number}-{count}"
            if draw.random() < 0.12:
                yield from self.shared(unit, name, at, held)
            else:
                yield from self.one(unit, name, at, held)
            if draw.random() < 0.04:
                yield from self.fault(unit, at + held // 3, held // 4)
            if draw.random() < 0.06:
                yield from self.scrub(unit, name, at + held, min(held // 4, 5 * MINUTE))
            # One in fifty begins before its predecessor has ended: contested.
            at += held * (9 if draw.random() < 0.02 else 10 + draw.randrange(0, 3)) // 10

    def owner(self):
        draw = self.random
        data = {"tenant": STRANGER if draw.random() < 0.005 else draw.choice(TENANTS), "mode": "exclusive",
                "class": draw.choice(["on_demand", "on_demand", "reserved", "spot"])}
        if draw.random() < 0.5:
            data["project"] = draw.choice(["vision", "speech"])
        return data

    def one(self, unit, name, at, held):
        draw, source = self.random, self.random.choice(ALLOCATORS)
        grant = {"allocation": name, **self.owner(), "units": [unit.named()]}
        if draw.random() < 0.3:
            grant["runtime"] = {"slurm_job": name}
        yield self.say(at, "allocation.granted", source, grant)
        if draw.random() < 0.04:
            tenant = draw.choice(TENANTS)
            yield self.say(at + int(held * draw.uniform(-0.1, 1.2)), "allocation.transferred", source, {"allocation": name, "tenant": tenant})
        dice, end = draw.random(), at + held
        if dice < 0.003:
            return  # never released
        if dice < 0.01:
            yield self.say(at - draw.randrange(1, MINUTE), "allocation.released", source, {"allocation": name, "reason": "cancelled"})
        yield self.say(end, "allocation.released", source, {"allocation": name, "reason": "completed"}, early=dice > 0.97)

    def shared(self, unit, name, at, held):
        """Several tenants on one unit; every tenth time for more than there is."""
        draw, source = self.random, self.random.choice(ALLOCATORS)
        shares = ["1/2", "1/3", "1/3"] if draw.random() < 0.1 else draw.choice([["1/2", "1/4"], ["1/3", "1/3", "1/3"], ["1/7", "2/7"]])
        for part, share in enumerate(shares):
            begin = at + held * part // 10
            grant = {"allocation": f"{name}-{part}", **self.owner(), "mode": "shared", "units": [{**unit.named(), "share": share}]}
            yield self.say(begin, "allocation.granted", source, grant)
            yield self.say(at + held - draw.randrange(0, held // 5 + 1), "allocation.released", source, {"allocation": f"{name}-{part}"})

    def fault(self, unit, at, lasts):
        source = f"/nodes/n{unit.node}/collector"
        cause = self.random.choice(["hardware", "unknown", "application"])
        state = self.random.choice([("fault", {"cause": cause}), ("maintenance", {})])
        yield self.say(at, "unit.state", source, {**unit.scope(), "state": state[0], **state[1]})
        yield self.say(at + lasts + 1, "unit.state", source, {**unit.scope(), "state": "ok"})

    def scrub(self, unit, name, at, lasts):
        source, begin = f"/nodes/n{unit.node}/collector", when(at)
        yield self.say(at, "scrub.started", source, {"scrub": name, **unit.scope()})
        total = MODEL["memory_bytes"]
        yield self.say(at + lasts + 1, "scrub.finished", source, {
            "scrub": name, **unit.scope(), "started_at": begin, "result": self.random.choice(["passed", "passed", "failed"]),
            "class": "clear", "steps": [{"method": "overwrite", "started_at": begin, "finished_at": when(at + lasts + 1), "exit_code": 0}],
            "tool": {"name": "gpuscrub", "version": "1.0", "digest": "sha256:00"}, "platform": {"driver": "580.82"},
            "coverage": {"bytes_total": total, "bytes_covered": total, "bytes_reserved": 0},
            "verification": {"method": "full", "bytes_read": total, "mismatches": 0}, "operator": "scrubber"})

    # ---- telemetry ----

    def all_windows(self):
        """Exactly `windows` of different identity, some late, then 1 % of them once more."""
        for node in range(NODES):
            share = self.windows // NODES + (1 if node < self.windows % NODES else 0)
            yield from self.node_windows(node, share)

    def node_windows(self, node, count):
        draw, at, stream, sequence = self.random, BEGIN, f"s{node}-0", 0
        reboot, silent = count // 2 + node, {count // 3 + node: 25 * MINUTE, count * 2 // 3 + node: 90 * MINUTE}
        for index in range(count):
            if index == reboot:  # another spool: another stream, from 0
                stream, sequence = f"s{node}-1", 0
            at += silent.get(index, 0)
            due = at + WINDOW + (self.delay() if draw.random() < 0.02 else draw.randrange(0, SECOND))
            event = Event(at + WINDOW, due, "telemetry.window", f"/nodes/n{node}/collector", f"{stream}-{sequence}",
                          self.window(node, at, stream, sequence))
            yield event
            if draw.random() < 0.01:
                yield Event(event.at, due + self.delay(), event.kind, event.source, event.id, event.data)
            at, sequence = at + WINDOW, sequence + 1

    def window(self, node, start, stream, sequence):
        draw, (whole, cut) = self.random, gpus_of(node)
        unit = {"gpu": whole, "sm_active_us": draw.randrange(0, WINDOW), "memory_bytes_max": draw.randrange(0, MODEL["memory_bytes"]),
                "memory_byte_us": number(draw.randrange(0, MODEL["memory_bytes"]) * WINDOW), "energy_mj": draw.randrange(0, 7_000_000),
                "covered_us": WINDOW, "quality": {"sm_active_us": "interval_mean", "energy_mj": "driver_counter"}}
        profile = CUTTING[sequence % len(CUTTING)]
        piece = {"gpu": cut, "placement": {"start": profile[1], "size": profile[2]}, "covered_us": WINDOW - draw.randrange(0, 1000),
                 "quality": {"sm_active_us": "unavailable(mig)"}}
        data = {"node": f"n{node}", "boot_id": f"b{node}", "stream": stream, "sequence": sequence, "start": when(start),
                "end": when(start + WINDOW), "units": [unit, piece], "processes": [], "gaps": []}
        if sequence % 4 == 0:
            data["processes"] = [{"gpu": whole, "pid": 1000 + node, "started_at": when(BEGIN), "slurm_job": f"u{node * 5}-{1 + sequence // 100}",
                                  "sm_active_us": draw.randrange(0, WINDOW), "covered_us": WINDOW, "quality": {"sm_active_us": "driver_sampled"}}]
        return data


def write(path, seed, facts, windows):
    """Writes all events in order of delivery. Returns (lines of facts, lines of windows, the clock of the run)."""
    fleet = Fleet(seed, facts, windows)
    about = fleet.all_facts()
    rows = [(event.due, number, event.kind == "telemetry.window", event.line()) for number, event in enumerate(about)]
    rows += [(event.due, len(about) + number, True, event.line()) for number, event in enumerate(fleet.all_windows())]
    rows.sort(key=lambda row: row[:2])
    with open(path, "w", encoding="utf-8") as out:
        out.writelines(f"{line}\n" for *_, line in rows)
    latest = max(fleet.end, max(event.at for event in about))
    # Two silences of a node move its last windows out; the clock stands behind all of it, at a full minute.
    clock = (latest + 3 * HOUR) // MINUTE * MINUTE
    counted = sum(is_window for _, _, is_window, _ in rows)
    return len(rows) - counted, counted, when(clock), when(BEGIN)
