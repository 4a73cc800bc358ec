"""Bars of the log's formats: outside judges, tampering, the rate of verification."""
import re
import subprocess
import sys

from frame import Short, bar
from product import LONG, ROOT, last_line, run


def judge(*words):
    """The RESULT line of a part of tests/tlog."""
    done = subprocess.run([sys.executable, str(ROOT / "tests" / "tlog"), *words], cwd=ROOT, stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=4 * LONG)
    if done.returncode:
        print(done.stdout)
        raise Short(last_line(done.stdout))
    return last_line(done.stdout).removeprefix("RESULT ")


@bar("judge-tlog", "aics-tlog and Go's lineage accept our checkpoints, tiles and proofs and reject every tampered copy (500)")
def judge_tlog():
    return judge("folders")


@bar("judge-witness", "aics-witness cosigns our log over HTTP, and again with a proof from the head it saw")
def judge_witness():
    return judge("witness")


@bar("tamper", "10,000 seeded mutations: all found by our verifier and both judges, given key and last checkpoint; no false alarm")
def tamper():
    return judge("folders", "--cases", "10000")


@bar("verify-rate", "1 million 400-byte leaves a second on one core with SHA extensions, from an exported folder")
def verify_rate():
    done = run("cargo", "run", "--release", "--locked", "-q", "-p", "gpuledger-tlog", "--example", "rate")
    result = last_line(done.stdout)
    found = re.search(r"verify_leaves_per_second=(\d+)", result)
    if not found or int(found[1]) < 1_000_000:
        raise Short(result)
    return result.removeprefix("RESULT ")
