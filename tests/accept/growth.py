"""Bars of a ledger that grows: what is bounded comes to the same as everything, and history costs nothing. The second takes an hour and the machine for itself."""
from frame import Short, bar
from ingest import figures
from suites import suite


@bar("bounded-reads", "1,000 random stories: journals, spans and allocations after each step as from all facts; floors lowered and less than all read in 10 % of settlements each")
def bounded():
    # The suite itself fails where either is reached too seldom.
    return suite("gpuledger-tests", "bounded", env={"SOAK_CASES": "1000"}, figure=r"\d+ random stories.*")


@bar("bench-growth", "1 million allocations and 20 million stored rows beside one month: rates within 10 %, a month's query and 1,000 late facts within 20 %")
def growth():
    result, found = figures("bench/growth.py", "bench-growth")
    if min(found["rows_ratio"], found["facts_ratio"]) < 0.9 or max(found["query_ratio"], found["late_ratio"]) > 1.2:
        raise Short(result)
    return result
