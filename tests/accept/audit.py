"""Bars of the audit log as a service: kills, superuser, roles, rates."""
import subprocess
import sys

from frame import Short, bar
from ingest import figures
from product import LONG, ROOT, last_line
from suites import suite


@bar("audit-kill", "kill -9 between any two steps, full disk and failed sync: each record one leaf, indexes contiguous, no checkpoint shrinks or forks")
def kill():
    done = subprocess.run([sys.executable, str(ROOT / "tests" / "audit")], cwd=ROOT, stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=4 * LONG)
    if done.returncode:
        print(done.stdout)
        raise Short(last_line(done.stdout))
    return f"{last_line(done.stdout)}; full disk: {suite('gpuledger-audit', 'full_disk')}"


@bar("audit-superuser", "history rewritten with full rights, re-hashed and signed with the real key, fails against one checkpoint; what guards stop and what they do not")
def superuser():
    return suite("gpuledger-audit", "rewritten")


@bar("audit-roles", "checkpoint for all, tiles for auditors, a tenant proves the leaves that name it and sees no other")
def roles():
    return suite("gpuledger-api", "audit")


@bar("audit-erasure", "a destroyed key opens nothing, is a leaf, leaves proofs valid, and is refused under retention")
def erasure():
    return suite("gpuledger-audit", "erasure")


@bar("bench-audit", "leaves until published at 0.4 of set-based INSERT; a proof within 30 single-row SELECTs at p99; 1 million leaves a second verified on one core")
def bench():
    result, found = figures("bench/audit.py", "bench-audit")
    if found["ratio"] < 0.4 or found["prove_p99_over_select_p99"] > 30 or found["verify_leaves_per_second"] < 1_000_000:
        raise Short(result)
    return result
