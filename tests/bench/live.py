"""A fleet at its own pace: 56,000 rows a second for five minutes, event time from ten past an hour.

Each second a tenth of the nodes hands over its windows. Lag is, for a record, the time from handing it to Kafka's client to the commit of its batch, as seen by
looking at the stored offsets ten times a second. CPU is that of the ledger's process, from the first record until everything is packed, over the five
minutes. In the end the hour is packed and compared with the load's own sums.

    make bench-live               RATE=n SECONDS_MEASURED=n for others

Last line: RESULT bench-live key=value …"""
import datetime
import os
import subprocess
import sys
import time

from stage import LOAD, STATE, Broker, Database, Failed, Ledger, Sampler, build, check_totals, read_offsets, say, wait_until

RATE = int(os.environ.get("RATE", "56000"))
LENGTH_S = int(os.environ.get("SECONDS_MEASURED", "300"))
FACTS = int(os.environ.get("FACTS", "0"))
START = datetime.datetime(2026, 10, 1, 7, 10, tzinfo=datetime.timezone.utc)
# The clock stands where event time ends, so that no window is of the future and no node is silent.
NOW = START + datetime.timedelta(seconds=LENGTH_S)
PACKED_WITHIN_S = 600


def text(at):
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def lags(handed, samples):
    """For each look at the offsets, how long ago the oldest record was handed over that is not committed yet: 0 where there is none."""
    found, place = [], 0
    for at, committed in samples:
        while place < len(handed) and handed[place][1] <= committed:
            place += 1
        if place < len(handed) and handed[place][0] <= at:
            found.append(at - handed[place][0])
        elif place < len(handed) or committed >= handed[-1][1]:
            found.append(0.0)
    return found


def main():
    build()
    STATE.mkdir(parents=True, exist_ok=True)
    broker, database, ledger = Broker(), Database(), None
    try:
        bootstrap = broker.start()
        ledger = Ledger(database, bootstrap, "bench.", text(NOW))
        ledger.call("migrate")
        ledger.start()
        time.sleep(3)
        cpu_before = ledger.cpu_s()
        sampler = Sampler(0.1, lambda: read_offsets(database).get("gpuledger.telemetry.v1", 0))
        sampler.start()
        words = [LOAD, "live", "--bootstrap", bootstrap, "--prefix", "bench.", "--rate", RATE, "--seconds", LENGTH_S, "--facts", FACTS,
                 "--start", text(START), "--truth", STATE / "truth.csv"]
        done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise Failed(f"load: {done.stderr.strip()[-800:]}")
        said = [line.split("=", 1) for line in done.stdout.splitlines()]
        handed = [(int(at) / 1000, int(count)) for at, count in (value.split(",") for name, value in said if name == "handed")]
        records = int(dict(said)["records"])
        wait_until("all is committed", lambda: read_offsets(database).get("gpuledger.telemetry.v1", 0) >= records, ledger, 120)
        samples = sampler.end()
        seen = lags(handed, samples)
        say(f"{records:,} records; lag p50 {percentile(seen, 0.5):.2f} s, p99 {percentile(seen, 0.99):.2f} s, longest {max(seen):.2f} s, of {len(seen)} looks")
        cpu_taken = ledger.cpu_s() - cpu_before
        wait_until("the hour is packed", lambda: database.number("SELECT count(*) FROM telemetry_block WHERE next_node IS NOT NULL") == 0,
                   ledger, PACKED_WITHIN_S, 1)
        cpu = ledger.cpu_s() - cpu_before
        say(f"CPU of the ledger: {cpu_taken:.1f} s to take in, {cpu - cpu_taken:.1f} s to pack; peak {ledger.peak_rss_mib():.0f} MiB")
        hours = check_totals(database, STATE / "truth.csv")
        database.check_logged()
        say(f"{hours:,} GPU hours equal the load's own sums")
        stored = database.number("SELECT count(*) FROM packed_hour")
        units = database.number("SELECT count(*) FROM (SELECT DISTINCT node, gpu, placement_start, hour_us FROM packed_hour) AS u")
        print(f"RESULT bench-live core_percent={100 * cpu / LENGTH_S:.1f} stored_rows_per_unit_hour={stored / units:.3f} "
              f"lag_p99_s={percentile(seen, 0.99):.2f}", flush=True)
    except Failed as e:
        sys.exit(f"bench-live: {e}")
    finally:
        if ledger:
            ledger.end()
        broker.stop()
        database.drop()


if __name__ == "__main__":
    main()
