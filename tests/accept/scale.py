"""Bars of several ledgers, of backup and restore: the long form of tests/chaos/scale.py, and offsets against a real broker."""
import re
import subprocess
import sys

from frame import Short, bar
from product import LONG, ROOT, last_line
from suites import suite


@bar("scale", "ledgers join and leave under load, the database is restored from a dump, the broker is lost: equal to an undisturbed run")
def scale():
    done = subprocess.run([sys.executable, str(ROOT / "tests/chaos/scale.py")], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=4 * LONG)
    if done.returncode:
        print(done.stdout[-6000:])
        wrong = re.findall(r"WRONG: (.*)", done.stdout)
        raise Short(wrong[0] if wrong else last_line(done.stdout))
    return last_line(done.stdout).removeprefix("RESULT scale ")


@bar("offsets", "stored offsets that are deleted, past the end, of another topic or cluster are refused before anything is read")
def offsets():
    return suite("gpuledger-messaging", "offsets", target="broker")
