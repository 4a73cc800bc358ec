"""A backlog of telemetry and facts through Kafka into committed journals and packed hours, beside a binary COPY of the same rows.

The backlog is an hour of a fleet: windows of ten seconds, nodes with 56 units and 64 processes, one window in a hundred late and one doubled, facts
(inventories, grants, releases) between them. It is made first; then the ledger starts, and time runs until every record's offset is
committed, no mark waits to be settled, and every block is packed. The baseline is a COPY of the same rows, 128 bytes of typed columns each, made ahead of the
server on another thread, into an unindexed, logged table of the same server, commit included. All sums of the packed hours are compared with the load's own. Then facts
alone.

    make bench-ingest             20 million rows, 20,000 facts between them, then 200,000 alone
    ROWS=200000 FACTS=2000 FACTS_ALONE=2000 make bench-ingest

Last line: RESULT bench-ingest key=value …"""
import datetime
import os
import sys
import time

from stage import STATE, Broker, Database, Failed, Ledger, build, check_totals, load, read_offsets, say, wait_until

ROWS = int(os.environ.get("ROWS", "20000000"))
FACTS = int(os.environ.get("FACTS", "20000"))
FACTS_ALONE = int(os.environ.get("FACTS_ALONE", "200000"))
NODES_ALONE = int(os.environ.get("NODES_ALONE", "100"))
LIMIT_S = int(os.environ.get("LIMIT_S", "3600"))
# The backlog crosses the edge of an hour. The ledger finds it later than lease and observation gap are long, so that its hours are posted.
START = datetime.datetime(2026, 10, 1, 7, 40, tzinfo=datetime.timezone.utc)
NOW = START + datetime.timedelta(hours=3, minutes=25)
# Facts alone come from nodes of their own, over a day.
ALONE_START = START - datetime.timedelta(days=1)


def text(at):
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def measured(ledger, telemetry, facts):
    """Runs the ledger until everything is in; seconds, and those until all was committed but not yet packed."""
    database, began, committed = ledger.database, time.monotonic(), None

    def done():
        nonlocal committed
        at = read_offsets(database)
        if at.get("gpuledger.telemetry.v1", 0) < telemetry or at.get("gpuledger.facts.v1", 0) < facts:
            return False
        committed = committed or time.monotonic() - began
        return not database.has_work_left()

    wait_until("everything is committed and packed", done, ledger, LIMIT_S)
    return time.monotonic() - began, committed


def with_telemetry(database, ledger, kafka):
    sent = load("backlog", *kafka, "--rows", ROWS, "--facts", FACTS, "--start", text(START), "--truth", STATE / "truth.csv")
    rows, records, facts = int(sent["rows"]), int(sent["records"]), int(sent["facts"])
    say(f"{rows:,} rows in {records:,} windows of {sent['nodes']} nodes ({sent['doubled']} doubled), {int(sent['payload_bytes']) / 2**20:,.0f} MiB; {facts:,} facts")
    ledger.start()
    took, committed = measured(ledger, records, facts)
    cpu, rss = ledger.cpu_s(), ledger.peak_rss_mib()
    say(f"{took:.1f} s, all committed after {committed:.1f} s; the ledger used {cpu:.1f} s CPU, {rss:.0f} MiB")
    hours = check_totals(database, STATE / "truth.csv")
    accepted = database.number("SELECT count(*) FROM fact")
    windows = database.number("SELECT sum(windows) FROM telemetry_block")
    if (accepted, windows) != (facts, int(sent["windows"])) or database.number("SELECT count(*) FROM parked"):
        raise Failed(f"{accepted} facts and {windows} windows are accepted, {facts} and {sent['windows']} were sent")
    say(f"{hours:,} GPU hours equal the load's own sums; {accepted:,} facts, {windows:,} windows accepted once")
    return rows, rows / took, records, facts


def facts_alone(database, ledger, kafka, telemetry, facts):
    """The ledger runs already: the time begins with its first commit of them, when all are in Kafka."""
    ledger.end()
    sent = load("facts", *kafka, "--facts", FACTS_ALONE, "--nodes", NODES_ALONE, "--start", text(ALONE_START), "--seconds", 86400)
    ledger.start()
    took, _ = measured(ledger, telemetry, facts + int(sent["facts"]))
    accepted = database.number("SELECT count(*) FROM fact") - facts
    pending = database.number("SELECT count(*) FROM audit_pending WHERE fact_seq IS NOT NULL") - facts
    if accepted != FACTS_ALONE or pending != FACTS_ALONE or database.number("SELECT count(*) FROM parked"):
        raise Failed(f"{accepted} facts and {pending} pending audit records, {FACTS_ALONE} facts were sent")
    say(f"{accepted:,} facts alone in {took:.1f} s, peak {ledger.peak_rss_mib():.0f} MiB")
    return accepted / took


def main():
    build()
    STATE.mkdir(parents=True, exist_ok=True)
    broker, database, ledger = Broker(), Database(), None
    try:
        bootstrap = broker.start()
        kafka = ("--bootstrap", bootstrap, "--prefix", "bench.")
        ledger = Ledger(database, bootstrap, "bench.", text(NOW))
        ledger.call("migrate")
        ledger.join()
        rows, rate, records, facts = with_telemetry(database, ledger, kafka)
        rss = ledger.peak_rss_mib()
        facts_rate = facts_alone(database, ledger, kafka, records, facts) if FACTS_ALONE else 0
        rss = max(rss, ledger.peak_rss_mib())
        ledger.end()
        broker.stop()
        copy = load("copy", "--url", database.url, "--rows", ROWS, "--start", text(START))
        if int(copy["rows"]) != rows:
            raise Failed(f"{copy['rows']} rows were copied, {rows} sent")
        database.check_logged()
        copy_rate = rows / (int(copy["took_ms"]) / 1000)
        say(f"COPY of the same rows: {int(copy['took_ms']) / 1000:.1f} s, of which its client waited {int(copy['starved_ms']) / 1000:.1f} s for its own rows")
        print(f"RESULT bench-ingest rows_per_second={rate:.0f} facts_per_second={facts_rate:.0f} copy_rows_per_second={copy_rate:.0f} "
              f"ratio={rate / copy_rate:.2f} peak_rss_mib={rss:.0f}", flush=True)
    except Failed as e:
        sys.exit(f"bench-ingest: {e}")
    finally:
        if ledger:
            ledger.end()
        broker.stop()
        database.drop()


if __name__ == "__main__":
    main()
