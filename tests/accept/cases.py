"""Bars of the written cases and of the mutants."""
import re
import subprocess
import sys

from frame import Short, bar
from product import LONG, ROOT, last_line
from suites import suite

LEAST = 120


@bar("cases", "a written table of at least 120 cases: in order, shuffled, backwards, by both methods")
def cases():
    said = suite("gpuledger-cases", figure=r"\d+ cases, \d+ of them on a database")
    count = re.search(r"(\d+) cases", said)
    if not count or int(count[1]) < LEAST:
        raise Short(said or "no count of cases was printed")
    return said


@bar("cases-database", "those of identity, late facts, measured time and bills: through the program, on a database")
def cases_on_a_database():
    return suite("gpuledger", target="cases", figure=r"\d+ cases on a database")


@bar("mutants", "each of M-2 to M-4, I-1 to I-6, A-2 to A-19, R-1 to R-5 and L-3 broken once: the tests kill every one")
def mutants():
    done = subprocess.run([sys.executable, str(ROOT / "tests/mutants/run.py")], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=8 * LONG)
    print(done.stdout[-8000:])
    if done.returncode:
        raise Short(last_line(done.stdout))
    return last_line(done.stdout)
