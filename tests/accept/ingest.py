"""Bars of telemetry at fleet speed. Each takes a quarter of an hour and the machine for itself."""
import re

from collector import python
from frame import Short, bar
from product import last_line


def figures(runner, name):
    result = last_line(python(runner)).removeprefix(f"RESULT {name} ")
    return result, {key: float(value) for key, value in re.findall(r"(\w+)=(\S+)", result)}


@bar("bench-ingest", "a backlog of 20 million rows costs no more than a COPY of them; 5,000 facts a second; at most 512 MiB")
def ingest():
    result, found = figures("bench/ingest.py", "bench-ingest")
    if found["ratio"] < 1.0 or found["facts_per_second"] < 5000 or found["peak_rss_mib"] > 512:
        raise Short(result)
    return result


@bar("bench-live", "56,000 rows a second: at most 35 % of a core, 1.2 stored rows a unit and hour, lag p99 within 5 s")
def live():
    result, found = figures("bench/live.py", "bench-live")
    if found["core_percent"] > 35 or found["stored_rows_per_unit_hour"] > 1.2 or found["lag_p99_s"] > 5:
        raise Short(result)
    return result
