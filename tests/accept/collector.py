"""Bars of the node agent and its simulator."""
import re
import subprocess
import sys

from frame import Short, Skipped, bar
from product import LONG, ROOT, last_line
from suites import suite


@bar("collector-reports", "each public report of a comparable system is a scenario, and the collector gives the right behaviour")
def reports():
    return suite("gpuledger-collector", "reports::", target="simulated", figure=r"test result: (.*)")


@bar("collector-truth", "1,000 random timelines against the ground truth: nothing invented, SM-active within 0.5 %, memory within a period")
def truth():
    return suite("gpuledger-collector", "random::", target="simulated", env={"SOAK_SEEDS": "1000"}, figure=r"\d+ timelines from seed.*")


@bar("collector-delivery", "an hour without a broker, a full disk, 200 kills: each window arrives once or lies in a gap")
def delivery():
    return suite("gpuledger-collector", target="delivery", figure=r"test result: (.*)")


def python(folder_or_file):
    """Runs a runner of the tests; returns its output, or Short with its last line."""
    done = subprocess.run([sys.executable, str(ROOT / "tests" / folder_or_file)], cwd=ROOT, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LONG)
    print(done.stdout[-4000:])
    if done.returncode:
        raise Short(last_line(done.stdout))
    return done.stdout


@bar("judge-nvml", "nvidia-ml-py, nvitop and gpustat run on every scenario and agree with the collector")
def judge():
    return last_line(python("judge"))


@bar("bench-collector", "rss <= 20 MiB, CPU <= 1 % of a core, nvitop-exporter needs 20 times the CPU and 4 times the memory")
def bench():
    result = last_line(python("bench/collector.py")).removeprefix("RESULT bench-collector ")
    figures = dict(re.findall(r"(\w+)=(\S+)", result))
    held = float(figures["rss_mib"]) <= 20 and float(figures["cpu_percent"]) <= 1 and float(figures["rss_ratio"]) >= 4
    # Too little CPU to divide by: then the share of a core alone is the bar.
    held = held and (figures["cpu_ratio"] == "n/a" or float(figures["cpu_ratio"]) >= 20)
    if not held:
        raise Short(result)
    return result


@bar("collector-hardware", "probe and sample on a real GPU with a CUDA load, written to docs/hardware-notes.md")
def hardware():
    notes = ROOT / "docs" / "hardware-notes.md"
    if not notes.exists():
        raise Skipped("no machine with a GPU was at hand")
    return notes.read_text().splitlines()[0].lstrip("# ")
