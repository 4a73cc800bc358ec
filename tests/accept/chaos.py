"""The bar of kills and restarts: the long form of tests/chaos."""
import re
import subprocess
import sys

from frame import Short, bar
from product import LONG, ROOT, last_line


@bar("chaos", "20,000 facts and 200,000 windows through two consumers, 30 kills, 2 crashes of the broker: equal to an undisturbed run")
def chaos():
    done = subprocess.run([sys.executable, str(ROOT / "tests/chaos")], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=4 * LONG)
    if done.returncode:
        print(done.stdout[-6000:])
        wrong = re.findall(r"WRONG: (.*)", done.stdout)
        raise Short(wrong[0] if wrong else last_line(done.stdout))
    return last_line(done.stdout).removeprefix("RESULT chaos ")
