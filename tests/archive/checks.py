"""What must hold of the archive: each check returns its figure, or raises Failed."""
import contextlib
import functools
import hashlib
import json
import re
import signal
import time
import urllib.request

from fleet import HOUR_US, Fleet, line, micros
from place import Failed, ledger, must

START = micros("2026-10-01T05:00:00Z")
HOURS = 3
WINDOWS = HOURS * 360
# Ten hours after the end: every hour is due.
LATER = "2026-10-01T18:00:00Z"
LATER_STILL = "2026-10-01T19:00:00Z"
LONG_AFTER = "2026-10-12T00:00:00Z"
PACKED = """SELECT hour_us, node, gpu, placement_start, placement_size, owner, sm_active_us, memory_byte_us, covered_us, unit_sm_active_us,
    unit_memory_byte_us, unit_memory_bytes_max, unit_energy_mj, unit_covered_us, quality::TEXT, encode(minutes, 'hex')
    FROM packed_hour ORDER BY 1, 2, 3, 4, 5, 6"""
USAGE = ("usage", "--from", "2026-10-01T05:00:00Z", "--to", "2026-10-01T08:00:00Z", "--format", "json", "--group-by", "tenant,allocation,node,hour")


@functools.cache
def events():
    """A fleet, its facts, and its windows: those in time, and every 37th, which come after their hours were archived."""
    fleet = Fleet(4, 3, START, HOURS)
    facts = [line(one) for one in fleet.facts()]
    windows = [line(one) for number in range(WINDOWS) for one in fleet.telemetry(number)]
    late = windows[::37]
    return fleet, facts, [one for n, one in enumerate(windows) if n % 37], late


def filled(one, archived=True):
    """Facts and windows in time, some of them twice; archived; then the late ones, archived too."""
    _, facts, windows, late = events()
    one.clock = "2026-10-01T08:00:00Z"
    one.replay(facts + windows + windows[::100], "in-time")
    if archived:
        one.clock = LATER
        one.call("maintain")
    one.clock = LATER_STILL
    one.replay(late, "late", "--as-of", "2026-10-01T08:00:00Z")
    if archived:
        one.call("maintain")


def answers(one):
    """All that a report says of these hours, and the packed hours to the byte."""
    return one.sql(PACKED), one.call(*USAGE).stdout, one.call("findings", "--format", "json").stdout


def replayed():
    """From the archive and exported facts into an empty database: the same packed hours and answers, to the byte."""
    with ledger("2026-10-01T08:00:00Z") as first, ledger(LATER_STILL) as second:
        filled(first)
        before = answers(first)
        facts = first.call("export", "events", "--facts-only").stdout.splitlines()
        said = second.replay(facts, "facts", "--archive", first.archive, "--as-of", "2026-10-01T08:00:00Z").stderr
        fleet, given, windows, late = events()
        must("facts", len(facts), len(given))
        if f"{fleet.windows} windows" not in said:
            raise Failed(f"of {fleet.windows} windows: {said}")
        after = answers(second)
        for what, a, b in zip(("packed hours", "usage", "findings"), before, after):
            if a != b:
                raise Failed(f"{what} differ: {str(a)[:300]} and {str(b)[:300]}")
        # Again, and an hour of it alone: nothing counts twice.
        second.call("replay", "--archive", first.archive, "--as-of", "2026-10-01T08:00:00Z")
        second.call("replay", "--archive", first.archive, "--from", "2026-10-01T06:00:00Z", "--to", "2026-10-01T07:00:00Z",
                    "--as-of", "2026-10-01T08:00:00Z")
        must("answers after a second time", answers(second) == before, True)
        rows = len(before[0])
        return f"{fleet.windows} windows, {len(facts)} facts: {rows} packed hours and the usage of them equal to the byte"


def totals(rows):
    """{(gpu, hour, owner): sums} without what is absent."""
    return {key: {name: int(value) for name, value in sums.items() if value is not None} for key, sums in rows.items()}


def read_by_duckdb():
    """Sums of the minutes, of the packed hours and of the generator are one; windows are there once, with the bytes they came with."""
    import duckdb

    with ledger("2026-10-01T08:00:00Z") as one:
        filled(one)
        fleet, *_ = events()
        db = duckdb.connect()
        db.execute("SET TimeZone = 'UTC'")
        minutes = f"read_parquet('{one.archive}/minutes/**/*.parquet', hive_partitioning = true)"
        windows = f"read_parquet('{one.archive}/windows/**/*.parquet', hive_partitioning = true)"
        rows = db.execute(f"""SELECT gpu, owner, epoch_us(date_trunc('hour', minute)), sum(sm_active_us), sum(memory_byte_us), sum(energy_mj), sum(covered_us)
            FROM {minutes} GROUP BY ALL""").fetchall()
        names = ("sm_active_us", "memory_byte_us", "energy_mj", "covered_us")
        seen = totals({(gpu, owner, hour): dict(zip(names, sums)) for gpu, owner, hour, *sums in rows})
        wanted = {key: dict(sums) for key, sums in fleet.truth.items()}
        must("minutes against the generator", {k: v for k, v in seen.items() if wanted.get(k) != v}, {})
        must("rows of minutes", len(seen), len(wanted))
        must("packed hours against the generator", packed(one), totals_of(fleet))
        missing, zero = db.execute(f"SELECT count(*) FILTER (sm_active_us IS NULL), count(*) FILTER (sm_active_us = 0) FROM {minutes}").fetchone()
        count, distinct, gaps, gap_us, kinds = db.execute(f"""SELECT count(*), count(DISTINCT (node, stream, sequence)), sum(gaps), sum(gap_us),
            count(DISTINCT encoding) FROM {windows}""").fetchone()
        must("windows, each once, gaps, their length, encodings", (count, distinct, gaps, gap_us, kinds),
             (fleet.windows, fleet.windows, fleet.gaps, fleet.gap_us, 2))
        must("hours by folder", db.execute(f"SELECT DISTINCT hour FROM {minutes} ORDER BY 1").fetchall(), [("05",), ("06",), ("07",)])
        sm = sum(sums["sm_active_us"] for sums in wanted.values())
        return f"{sm} SM-active microseconds in {len(rows)} sums equal the packed hours and the generator; {count} windows, {gaps} gaps, {missing} minutes unmeasured, {zero} idle"


def packed(one):
    """SM-active time of units by GPU and hour, from the packed hours."""
    rows = one.sql("SELECT gpu, hour_us, sum(unit_sm_active_us) FROM packed_hour GROUP BY 1, 2")
    return {(gpu, int(hour)): int(sm) for gpu, hour, sm in rows}


def totals_of(fleet):
    return {(gpu, hour): sums["sm_active_us"] for (gpu, owner, hour), sums in fleet.truth.items() if owner is None}


def stands(one):
    """Every closed file is there with the digest of its name, its row and its audit record; nothing else is there."""
    rows = one.sql("SELECT key, encode(digest, 'hex'), bytes FROM archive_file ORDER BY key")
    for key, digest, size in rows:
        data = (one.archive / key).read_bytes()
        must(key, (hashlib.sha256(data).hexdigest(), len(data)), (digest, int(size)))
        if digest not in key:
            raise Failed(f"{key} is not named by its digest {digest}")
    audited = one.sql("SELECT convert_from(body, 'UTF8') FROM audit_pending WHERE kind = 'archive_file'")
    told = sorted((said["key"], said["digest"]) for said in (json.loads(row[0]) for row in audited))
    must("audit records", told, [(key, digest) for key, digest, _ in rows])
    found = sorted(str(path.relative_to(one.archive)) for path in one.archive.rglob("*") if path.is_file())
    must("files", found, [key for key, *_ in rows])
    counted = one.sql("SELECT sum(rows) FROM archive_file WHERE kind = 'windows'")[0][0]
    return len(rows), int(counted or 0)


def killed():
    """kill -9 between the files and the commit that closes them: the next round closes the same files, nothing counts twice."""
    with ledger("2026-10-01T08:00:00Z") as one:
        filled(one, archived=False)
        program = one.start("maintain", env={"FAILPOINTS": "ledger::archive-written=1*off->return"})
        deadline = time.monotonic() + 120
        # It is held before it commits, so that both files of the second hour stand and are not closed.
        while len(list(one.archive.rglob("hour=06/*.parquet"))) < 2:
            if program.poll() is not None or time.monotonic() > deadline:
                program.kill()
                raise Failed(f"it never came to the second hour: {one.log.read_text(encoding='utf-8')[-300:]}")
            time.sleep(0.05)
        program.send_signal(signal.SIGKILL)
        program.wait()
        closed = one.sql("SELECT count(*), count(DISTINCT hour_us) FROM archive_file")[0]
        must("files and hours closed before the kill", closed, ["2", "1"])
        begun = {row[0] for row in one.sql("SELECT key FROM archive_intent")}
        left = {str(path.relative_to(one.archive)) for path in one.archive.rglob("hour=06/*.parquet")}
        must("files of the second hour that are announced", left <= begun and len(left) == 2, True)
        # One that will never be closed, because the next attempt has other windows in it.
        orphan = next(iter(left)).replace("hour=06", "hour=07")
        (one.archive / orphan).parent.mkdir(parents=True, exist_ok=True)
        (one.archive / orphan).write_bytes(b"half")
        one.sql(f"INSERT INTO archive_intent VALUES ('{orphan}', 0)")
        said = one.call("maintain").stdout
        if "1 files removed that were begun and never closed" not in said:
            raise Failed(f"the orphan stays: {said}")
        files, windows = stands(one)
        must("windows in files", windows, events()[0].windows)
        must("announced files", one.sql("SELECT count(*) FROM archive_intent")[0][0], "0")
        return f"{files} files, {windows} windows once; what the kill left was closed, an orphan was removed"


def retained():
    """Days of archived windows and old months of packed hours go; the export of all events is the same before and after."""
    with ledger("2026-10-01T08:00:00Z") as one:
        filled(one, archived=False)
        before = sorted(one.call("export", "events").stdout.splitlines())
        hour = sorted(one.call("export", "events", "--from", "2026-10-01T06:00:00Z", "--to", "2026-10-01T07:00:00Z").stdout.splitlines())
        one.clock = LATER_STILL
        first = one.call("maintain").stdout
        if "dropped" in first:
            raise Failed(f"what was archived today is kept a week: {first}")
        must("export after archiving", sorted(one.call("export", "events").stdout.splitlines()) == before, True)
        one.clock = LONG_AFTER
        must("what goes", [l for l in one.call("maintain").stdout.splitlines() if "dropped" in l], [f"dropped telemetry_block_2026_10_0{day}" for day in (1, 2, 3)])
        must("blocks", one.sql("SELECT count(*) FROM telemetry_block")[0][0], "0")
        must("export after the drop", sorted(one.call("export", "events").stdout.splitlines()) == before, True)
        again = sorted(one.call("export", "events", "--from", "2026-10-01T06:00:00Z", "--to", "2026-10-01T07:00:00Z").stdout.splitlines())
        must("export of an hour", again == hour, True)
        one.clock = "2029-01-01T00:00:00Z"
        must("what goes after 26 months", [l for l in one.call("maintain").stdout.splitlines() if "packed_hour_2026_10" in l],
             ["dropped packed_hour_2026_10"])
        must("facts", int(one.sql("SELECT count(*) FROM fact")[0][0]), len(events()[1]))
        must("ahead", one.sql("SELECT count(*) FROM pg_class WHERE relname IN ('entry_2029_03', 'packed_hour_2029_03', 'telemetry_block_2029_01_03')"), [["3"]])
        files, _ = stands(one)
        return f"{len(before)} events the same from blocks and from {files} files; a day and a month of partitions dropped, those ahead made"


def refused():
    """A file that changed is damaged; an archive of another ledger is not written to."""
    with ledger("2026-10-01T08:00:00Z") as one, ledger(LATER_STILL) as other:
        filled(one)
        filled(other, archived=False)
        foreign = other.call("maintain", env={"GPULEDGER_ARCHIVE_URL": str(one.archive)}, check=False)
        if foreign.returncode == 0 or "which this database does not know" not in foreign.stderr:
            raise Failed(f"the archive of another ledger was written to: {foreign.stderr}")
        stands(one)
        file = next(one.archive.glob("windows/**/*.parquet"))
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
        damaged = other.call("replay", "--archive", one.archive, check=False)
        if damaged.returncode != 1 or "damaged" not in damaged.stderr or file.name not in damaged.stderr:
            raise Failed(f"a damaged file was read: {damaged.returncode} {damaged.stderr}")
        missing = other.call("replay", "--archive", "/no/such/archive", check=False)
        must("exit code without an archive", missing.returncode, 3)
        return "a damaged file and a foreign archive are refused by name"


def served():
    """`serve` archives what is due by itself; with the archive out of reach it stays ready, and a metric says how many hours wait."""
    with ledger("2026-10-01T08:00:00Z") as one:
        filled(one, archived=False)
        with serving(one, "/proc/no/archive") as admin:
            until(lambda: "gpuledger_ledger_unarchived_hours 3" in get(admin, "metrics"), "three hours that wait")
            until(lambda: get(admin, "readyz"), "readiness without an archive")
        must("files", one.sql("SELECT count(*) FROM archive_file")[0][0], "0")
        with serving(one, one.archive):
            until(lambda: one.sql("SELECT count(*) FROM archive_file")[0][0] == "6", "six files")
        with serving(one, one.archive) as admin:
            until(lambda: "gpuledger_ledger_unarchived_hours 0" in get(admin, "metrics"), "no hour that waits")
        files, windows = stands(one)
        must("windows in files", windows, events()[0].windows)
        return f"{files} files closed by `serve`; ready without an archive, 3 hours told"


@contextlib.contextmanager
def serving(one, place):
    """The address of the ledger's metrics while it serves."""
    program = one.start("serve", "--only", "ledger", env={"GPULEDGER_ARCHIVE_URL": str(place), "GPULEDGER_ADMIN_BIND": "127.0.0.1:0"})
    try:
        said = re.compile(r"metrics\s+(http://[^/]+)/")
        until(lambda: said.search(one.log.read_text(encoding="utf-8")) or program.poll() is not None, "an address")
        yield said.search(one.log.read_text(encoding="utf-8")).group(1)
    finally:
        program.terminate()
        program.wait()


def until(holds, what, patience=60):
    end = time.monotonic() + patience
    while not holds():
        if time.monotonic() > end:
            raise Failed(f"not within {patience} s: {what}")
        time.sleep(0.1)


def get(address, path):
    """What a GET answers; nothing where it does not answer 200."""
    try:
        with urllib.request.urlopen(f"{address}/{path}", timeout=10) as answer:
            return answer.read().decode()
    except OSError:
        return ""


ALL = {"serve": served, "replay": replayed, "duckdb": read_by_duckdb, "kill": killed, "retention": retained, "refusal": refused}
