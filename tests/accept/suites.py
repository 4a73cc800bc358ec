"""Bars that a runner or a suite of tests looks at; the figure is the line it ends with."""
import os
import re
import subprocess
import sys

from frame import Short, Skipped, bar
from product import LOCAL, LONG, ROOT, last_line, run, shared


def scenarios(kind):
    shared("scenarios", kind)
    done = run(LOCAL / "scenarios.sh", kind, check=False)
    figure = last_line(done.stdout)
    if done.returncode:
        print(done.stdout, done.stderr)
        raise Short(figure or last_line(done.stderr))
    return figure


@bar("scenarios-ledger", "every ledger example but residue: in order, shuffled and doubled, backwards")
def scenarios_ledger():
    return scenarios("ledger")


@bar("scenarios-billing", "billing examples 01, 06, 16, 26")
def scenarios_billing():
    return scenarios("billing")


@bar("examples-own", "our own worked examples of the rules: in order, shuffled and doubled, backwards")
def examples_own():
    return examples()


def examples(*files):
    """Our worked examples, or these of them."""
    env = {**os.environ, "FRESH_DB": f"{LOCAL}/postgres.sh fresh-db", "DROP_DB": f"{LOCAL}/postgres.sh drop-db",
           "GPULEDGER": str(ROOT / "target/debug/gpuledger")}
    done = subprocess.run([sys.executable, str(ROOT / "tests/scenarios/run.py"), *map(str, files)], env=env, cwd=ROOT, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=4 * LONG)
    if done.returncode:
        print(done.stdout)
        raise Short(last_line(done.stdout))
    return last_line(done.stdout)


def cargo(*words, env=None, figure=r"test result: (.*)"):
    """A suite of the workspace: it must pass and run at least one test. Returns the lines that carry its figures."""
    words = ["cargo", "test", "--locked", *words, "--", "--nocapture"]
    done = subprocess.run(words, env={**os.environ, **(env or {})}, cwd=ROOT, stdin=subprocess.DEVNULL, timeout=4 * LONG,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        print(done.stdout[-6000:])
        raise Short(f"`{' '.join(words)}` exit {done.returncode}")
    if sum(map(int, re.findall(r"test result: ok\. (\d+) passed", done.stdout))) == 0:
        raise Skipped(f"no test of that name: {' '.join(words)}")
    print(done.stdout[-4000:])
    return "; ".join(line for line in re.findall(figure, done.stdout) if not line.startswith("ok. 0 passed"))


@bar("properties", "10,000 random fleets keep the laws; each harder rule in at least 10 % of them")
def properties():
    # The suite itself fails where a rule is reached too seldom.
    return cargo("-p", "gpuledger-tests", "properties", env={"SOAK_CASES": "10000"}, figure=r"\d+ random cases: .*")
