"""Rows and bytes a day of a fleet, by table and in the archive: what operators must plan for.

    make bench-rows                  1,000 GPUs on 125 nodes, two hours of them, told for a day
    make bench-rows NODES=10 HOURS=1

Collectors send a window each 10 s with a process on each GPU, and an inventory each minute; each GPU has a job an hour. Readings are drawn at
random, so that they compress worse than those of a real fleet. Sizes are those of tables with their indexes, after VACUUM."""
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "archive"))
from fleet import HOUR_US, Fleet, instant, line, micros  # noqa: E402
from place import ledger  # noqa: E402

NODES = int(os.environ.get("NODES", 125))
GPUS = 8
HOURS = int(os.environ.get("HOURS", 2))
START = micros("2026-10-01T05:00:00Z")
# What grows, and which tables it is in. Partitions count with their parent.
GROWS = {
    "facts": ("fact", ["fact", "fact_subject", "identity"]),
    "pending audit records": ("audit_pending", ["audit_pending"]),
    "journals": ("journal", ["journal"]),
    "entries": ("entry", ["entry"]),
    "usage spans, allocations": ("usage_span", ["usage_span", "allocation"]),
    "proof of life": ("node_heard", ["node_heard"]),
    "packed hours": ("packed_hour", ["packed_hour"]),
    "blocks of windows": ("telemetry_block", ["telemetry_block"]),
}


def fill(one, fleet):
    """Facts, then telemetry an hour at a time; a file that holds all of it would be a gigabyte."""
    one.replay((line(fact) for fact in fleet.facts(HOUR_US // 60)), "facts", "--as-of", instant(fleet.start_us))
    for hour in range(fleet.hours):
        windows = (line(w) for number in range(hour * 360, (hour + 1) * 360) for w in fleet.telemetry(number))
        one.replay(windows, "windows", "--as-of", instant(fleet.start_us))
    # Hours are posted once silence can no longer change them, which is after an hour and a quarter.
    one.clock = instant(fleet.end_us + 3 * HOUR_US)
    (one.home / "empty.ndjson").touch()
    one.call("replay", one.home / "empty.ndjson", "--as-of", instant(fleet.end_us + 2 * HOUR_US))


def sizes(one):
    """{what: (rows, bytes)} of the database, then of the archive."""
    one.call("maintain", env={"GPULEDGER_ARCHIVE_AFTER_HOURS": "0"})
    for table in [table for _, tables in GROWS.values() for table in tables]:
        one.sql(f"VACUUM {table}")
    seen = {}
    for what, (counted, tables) in GROWS.items():
        rows = int(one.sql(f"SELECT count(*) FROM {counted}")[0][0])
        seen[what] = (rows, sum(size_of(one, table) for table in tables))
    for kind in ("windows", "minutes"):
        rows, size = one.sql(f"SELECT sum(rows), sum(bytes) FROM archive_file WHERE kind = '{kind}'")[0]
        seen[f"archive, {kind}"] = (int(rows), int(size))
    return seen


def size_of(one, table):
    """A table, its indexes and what it stores aside; of a partitioned one that of its partitions."""
    return int(one.sql(f"""SELECT sum(pg_total_relation_size(relid)) FROM (SELECT '{table}'::regclass AS relid
        UNION SELECT relid FROM pg_partition_tree('{table}')) AS parts""")[0][0])


def main():
    fleet = Fleet(NODES, GPUS, START, HOURS)
    with ledger(instant(fleet.end_us)) as one:
        fill(one, fleet)
        seen = sizes(one)
        files = int(one.sql("SELECT count(*) FROM archive_file")[0][0])
    scale = 24 / HOURS
    print(f"{NODES * GPUS} GPUs on {NODES} nodes, measured over {HOURS} h, told for a day; {files} files of the archive in that time")
    print("| what | rows a day | MiB a day | bytes a row |\n|---|---:|---:|---:|")
    for what, (rows, size) in seen.items():
        print(f"| {what} | {rows * scale:,.0f} | {size * scale / 2**20:,.1f} | {size / max(rows, 1):,.0f} |")
    mib = {what: size * scale / 2**20 for what, (_, size) in seen.items()}
    kept = sum(size for what, size in mib.items() if what not in ("blocks of windows",) and not what.startswith("archive"))
    rows = sum(count for what, (count, _) in seen.items() if not what.startswith("archive")) * scale
    archive = mib["archive, windows"] + mib["archive, minutes"]
    print(f"RESULT bench-rows gpus={NODES * GPUS} rows_per_day={rows:.0f} database_mib_per_day={kept:.0f} "
          f"blocks_mib_per_day={mib['blocks of windows']:.0f} archive_mib_per_day={archive:.0f}")


if __name__ == "__main__":
    main()
