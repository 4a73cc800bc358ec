"""What history costs: the same work on a ledger with one month in place and with 24 (1 million allocations, 20 million stored telemetry rows).

Both histories are told by the product itself: months of grants and releases on 64 GPUs are replayed, each with its horizon, so that journals, spans and
allocations are what the ledger makes of them; `ledger verify` looks at some GPUs of the last month. Stored telemetry is one packed hour that the
ledger made, written again for every GPU, hour and owner. Then in each: facts through Kafka, telemetry and facts through Kafka, the month's usage by
tenant, and 1,000 late facts of the last month.

    make bench-growth             all of it
    ALLOCATIONS=20000 STORED=400000 ROWS=200000 FACTS=5000 make bench-growth

Last line: RESULT bench-growth key=value … The ratios are 24 months by one: of rates at least 0.9, of times at most 1.2."""
import datetime
import json
import os
import random
import sys
import time

from stage import STATE, Broker, Database, Failed, Ledger, build, load, read_offsets, run, say, wait_until

ALLOCATIONS = int(os.environ.get("ALLOCATIONS", "1000000"))
STORED = int(os.environ.get("STORED", "20000000"))
MONTHS = int(os.environ.get("MONTHS", "24"))
ROWS = int(os.environ.get("ROWS", "2000000"))
FACTS = int(os.environ.get("FACTS", "50000"))
LATE = int(os.environ.get("LATE", "1000"))
LIMIT_S = int(os.environ.get("LIMIT_S", "3600"))
NODES, GPUS = 8, 8
# The last month of the history; what comes after it is the load's, an hour of telemetry and a day of facts.
LAST = datetime.datetime(2026, 9, 1, tzinfo=datetime.timezone.utc)
END = datetime.datetime(2026, 10, 1, tzinfo=datetime.timezone.utc)
FACTS_START = END + datetime.timedelta(hours=6)
ROWS_START = END + datetime.timedelta(days=2, hours=7, minutes=40)
NOW = ROWS_START + datetime.timedelta(hours=3, minutes=25)
SECONDS = 86400


def text(at):
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def month_before(at, months):
    index = at.year * 12 + at.month - 1 - months
    return at.replace(year=index // 12, month=index % 12 + 1)


def event(source, name, kind, at, data):
    return json.dumps({"specversion": "1.0", "source": source, "id": name, "type": f"gpuledger.{kind}.v1", "time": text(at), "data": data})


def gpu(node, index):
    return f"GPU-growth-{node}-{index}"


def inventories(at):
    for node in range(NODES):
        gpus = [{"uuid": gpu(node, index), "model": "NVIDIA H100 80GB HBM3", "compute_slices": 7, "memory_slices": 8, "mig": False,
                 "instances": []} for index in range(GPUS)]
        yield event(f"/nodes/growth-{node}/collector", "inventory", "node.inventory", at, {"node": f"growth-{node}", "boot_id": "b", "gpus": gpus})


class History:
    """Whole GPUs held one after another, three quarters of the time, each GPU of a node a little later than the one before."""

    def __init__(self):
        self.first = month_before(LAST, MONTHS - 1)
        self.cycle = (END - self.first) / (ALLOCATIONS / (NODES * GPUS))

    def month(self, begin, end):
        """Grants and releases in `[begin, end)` in the order of time; allocations of earlier months end in it."""
        said = []
        for place in range(NODES * GPUS):
            node, index = divmod(place, GPUS)
            offset = self.cycle * index / GPUS
            number = max(0, int((begin - self.first - offset) / self.cycle) - 1)
            while (start := self.first + offset + number * self.cycle) < end:
                stop = start + self.cycle * 3 / 4
                name = f"g-{place}-{number}"
                if begin <= start:
                    said.append((start, event("/allocators/growth", f"{name}-granted", "allocation.granted", start,
                                 {"allocation": name, "tenant": f"t-{number % 20}", "mode": "exclusive", "class": "on_demand", "units": [{"gpu": gpu(node, index)}]})))
                if begin <= stop < end:
                    said.append((stop, event("/allocators/growth", f"{name}-released", "allocation.released", stop, {"allocation": name, "reason": "completed"})))
                number += 1
        said.sort()
        return [line for _, line in said]


def late_facts():
    """Maintenance of ten minutes on some GPU at some time of the last month, told weeks later."""
    dice = random.Random(7)
    for number in range(LATE // 2):
        begin = LAST + datetime.timedelta(days=1) + (END - LAST - datetime.timedelta(days=3)) * dice.random()
        name = gpu(dice.randrange(NODES), dice.randrange(GPUS))
        for state, at in (("maintenance", begin), ("ok", begin + datetime.timedelta(minutes=10))):
            yield event("/platform", f"late-{number}-{state}", "unit.state", at, {"gpu": name, "state": state})


def replay(ledger, lines, as_of=None):
    file = STATE / "growth.ndjson"
    with open(file, "w", encoding="utf-8") as out:
        out.writelines(line + "\n" for line in lines)
    began = time.monotonic()
    ledger.call("replay", file, *(("--as-of", text(as_of)) if as_of else ()))
    took = time.monotonic() - began
    file.unlink()
    return took


def tell(ledger, months):
    """The history of the last months, each settled at its end."""
    history, began = History(), time.monotonic()
    first = month_before(LAST, months - 1)
    replay(ledger, inventories(history.first if months == MONTHS else first), first)
    for back in reversed(range(months)):
        begin = month_before(LAST, back)
        end = month_before(LAST, back - 1)
        replay(ledger, history.month(begin, end), end)
    ledger.call("ledger", "verify", "--gpu", ",".join(gpu(node, node % GPUS) for node in range(0, NODES, 3)), "--from", text(END - datetime.timedelta(days=6)))
    count = ledger.database.number("SELECT count(*) FROM allocation")
    say(f"{count:,} allocations of {months} months are in place after {time.monotonic() - began:.0f} s; verified on a sample")
    return count


def store(ledger, months):
    """Packed hours of the history, made of one that the ledger packed."""
    database, began = ledger.database, time.monotonic()
    at = LAST + datetime.timedelta(minutes=1)
    reading = {"gpu": gpu(0, 0), "sm_active_us": 5_000_000, "memory_byte_us": "10000000000", "covered_us": 10_000_000,
               "quality": {"sm_active_us": "interval_mean", "memory_byte_us": "driver_counter"}}
    process = {**reading, "pid": 7, "started_at": text(at)}
    data = {"node": "growth-0", "boot_id": "b", "stream": "s", "sequence": 0, "start": text(at), "end": text(at + datetime.timedelta(seconds=10)),
            "units": [reading], "processes": [{**process, "pid": pid} for pid in (7, 8)], "gaps": []}
    replay(ledger, [event("/nodes/growth-0/collector", "window", "telemetry.window", at, data)], END)
    hours = int((END - month_before(LAST, months - 1)).total_seconds()) // 3600
    owners = max(2, round(STORED * months / MONTHS / (hours * NODES * GPUS)))
    columns = [name for (name,) in database.sql("SELECT attname FROM pg_attribute WHERE attrelid = 'packed_hour'::REGCLASS AND attnum > 0 AND NOT attisdropped ORDER BY attnum")]
    keys = {"hour_us": "h.hour_us", "node": "'growth-' || n", "gpu": "'GPU-growth-' || n || '-' || g", "owner": "'pid:b/' || o || '/1'"}
    values = ", ".join(keys.get(name, f"t.{name}") for name in columns)
    first_us = int(month_before(LAST, months - 1).timestamp()) * 1_000_000
    database.sql(f"SELECT count(ensure_telemetry_partition('packed_hour', {first_us} + d * 86400000000::BIGINT)) FROM generate_series(0, {hours // 24}) AS d")
    # One statement a month, so that none is too long to be watched.
    for back in reversed(range(months)):
        begin, end = (int(month_before(LAST, b).timestamp()) * 1_000_000 for b in (back, back - 1))
        database.sql(f"""INSERT INTO packed_hour ({', '.join(columns)}) SELECT {values}
            FROM generate_series({begin}::BIGINT, {end} - 1, 3600000000) AS h (hour_us), generate_series(0, {NODES - 1}) AS n,
                 generate_series(0, {GPUS - 1}) AS g, generate_series(1, {owners}) AS o,
                 LATERAL (SELECT * FROM (SELECT *, row_number() OVER (ORDER BY owner) AS place FROM packed_hour
                                         WHERE node = 'growth-0' AND hour_us = {int(LAST.timestamp())} * 1000000::BIGINT AND owner LIKE 'pid:b/_/%') AS made
                          WHERE place = CASE WHEN o = 1 THEN 1 ELSE 2 END AND made.gpu = 'GPU-growth-0-0' LIMIT 1) AS t
            WHERE NOT (h.hour_us = {int(LAST.timestamp())} * 1000000::BIGINT AND n = 0 AND g = 0)""")
    database.sql("VACUUM (ANALYZE)")
    count = database.number("SELECT count(*) FROM packed_hour")
    say(f"{count:,} packed rows are in place after {time.monotonic() - began:.0f} s")
    return count


def through_kafka(ledger, words, topic, count):
    """Seconds from the start of the ledger until all is committed, settled and packed."""
    database = ledger.database
    before = read_offsets(database).get(topic, 0)
    sent = load(*words)
    records = int(sent["records"] if topic.startswith("gpuledger.telemetry") else sent["facts"])
    facts = read_offsets(database).get("gpuledger.facts.v1", 0) + int(sent["facts"])
    ledger.start()
    began = time.monotonic()

    def done():
        at = read_offsets(database)
        if at.get(topic, 0) < before + records or at.get("gpuledger.facts.v1", 0) < facts:
            return False
        return not database.has_work_left()

    wait_until("everything is committed and packed", done, ledger, LIMIT_S)
    took = time.monotonic() - began
    ledger.end()
    return count(sent) / took


def measure(months, broker):
    database, bootstrap = Database(), broker.start()
    ledger = Ledger(database, bootstrap, f"growth{months}.", text(NOW))
    try:
        ledger.call("migrate")
        allocations, stored = tell(ledger, months), store(ledger, months)
        usage = ("usage", "--from", text(LAST), "--to", text(END), "--group-by", "tenant", "--format", "json")
        ledger.call(*usage)
        queries = []
        for _ in range(5):
            began = time.monotonic()
            ledger.call(*usage)
            queries.append(time.monotonic() - began)
        late = replay(ledger, late_facts())
        ledger.call("ledger", "verify", "--gpu", gpu(0, 0), "--from", text(END - datetime.timedelta(days=6)))
        # Behind the history: `serve` moves the clock to now, and what is told with an earlier one would be refused.
        ledger.join()
        kafka = ("--bootstrap", bootstrap, "--prefix", f"growth{months}.")
        facts = through_kafka(ledger, ("facts", *kafka, "--facts", FACTS, "--nodes", 100, "--start", text(FACTS_START), "--seconds", SECONDS),
                              "gpuledger.facts.v1", lambda sent: int(sent["facts"]))
        rows = through_kafka(ledger, ("backlog", *kafka, "--rows", ROWS, "--facts", 2000, "--start", text(ROWS_START), "--truth", STATE / "growth.csv"),
                             "gpuledger.telemetry.v1", lambda sent: int(sent["rows"]))
        figures = {"allocations": allocations, "stored": stored, "query_s": min(queries), "late_s": late, "facts_per_second": facts, "rows_per_second": rows}
        say(f"{months} months: " + " ".join(f"{name}={value:.2f}" if isinstance(value, float) else f"{name}={value}" for name, value in figures.items()))
        return figures
    finally:
        ledger.end()
        broker.stop()
        database.drop()


def main():
    build()
    STATE.mkdir(parents=True, exist_ok=True)
    broker = Broker()
    try:
        one, many = measure(1, broker), measure(MONTHS, broker)
        ratio = {name: many[name] / one[name] for name in ("rows_per_second", "facts_per_second", "query_s", "late_s")}
        print(f"RESULT bench-growth allocations={many['allocations']} stored={many['stored']} rows_ratio={ratio['rows_per_second']:.2f} "
              f"facts_ratio={ratio['facts_per_second']:.2f} query_ratio={ratio['query_s']:.2f} late_ratio={ratio['late_s']:.2f} "
              f"query_s={many['query_s']:.2f} late_s={many['late_s']:.2f}", flush=True)
    except Failed as e:
        sys.exit(f"bench-growth: {e}")


if __name__ == "__main__":
    main()
