"""Outside judges on every scenario of the simulator: nvidia-ml-py, nvitop and gpustat run without a crash, and agree with the collector on
what they can see.

    make judge                          every scenario
    make judge JUDGE='mps sparse-mig'   those whose names contain one of the words

At each change of a scenario's timeline, or eight of many, the clock is held. The collector takes its sample, which spans two periods;
nvidia-ml-py looks over the same interval; `nvitop -1`, `gpustat --json` and `probe` look where it ended. What the collector says is compared
with what each of them says: names, MIG devices, memory, processes, energy, activity, and why something is absent. A difference, or an end of
a viewer, that has a known cause (known.py) is counted under that cause and listed; any other makes the exit code 1."""
import concurrent.futures
import os
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import compare
import known
from node import LIBRARY, ROOT, Node
from scenario import Scenario

SCENARIOS = ROOT / "collector" / "nvml-sim" / "scenarios"
HEADINGS = ("scenario", "instants", "compared", "agree", "known", "differ", "known_ends", "crashed")


@dataclass
class Verdict:
    """What came of one scenario."""
    name: str
    instants: int = 0
    compared: int = 0
    excused: Counter = field(default_factory=Counter)
    differing: list = field(default_factory=list)
    crashed: list = field(default_factory=list)

    def row(self):
        known, differ = sum(count for cause, count in self.excused.items() if cause.is_of_values), len(self.differing)
        ends = sum(self.excused.values()) - known
        return self.name, self.instants, self.compared, self.compared - known - differ, known, differ, ends, len(self.crashed)

    @property
    def is_clean(self):
        return not self.differing and not self.crashed and self.compared


def judge(path, folder):
    scenario = Scenario(path)
    verdict = Verdict(scenario.name)
    node = Node(scenario, folder / scenario.name)
    for at_us in scenario.instants():
        scene = node.watch(at_us)
        verdict.instants += 1
        at = f"{at_us / 1e6:g} s"
        for client, ended in scene.ended.items():
            fault = known.fault(client, ended, scene)
            cause = fault and known.cause_of_end(client, ended, scene, scenario)
            if cause:
                verdict.excused[cause] += 1
            elif fault:
                verdict.crashed.append(f"{at}: {client}: {fault}: {ended.last_words()}")
        differences, compared = compare.of_scene(scene)
        verdict.compared += compared
        for difference in differences:
            cause = known.cause_of_difference(difference, scene, scenario)
            if cause:
                verdict.excused[cause] += 1
            else:
                verdict.differing.append(f"{at}: {difference}")
    return verdict


def table(rows):
    widths = [max(len(str(cell)) for cell in column) for column in zip(*rows)]
    for row in rows:
        print("  ".join(str(cell).ljust(width) if place == 0 else str(cell).rjust(width) for place, (cell, width) in enumerate(zip(row, widths))).rstrip())


def chosen(words):
    paths = sorted(SCENARIOS.glob("*.yaml"))
    return [path for path in paths if not words or any(word in path.stem for word in words)]


def report(verdicts):
    table([HEADINGS, *(verdict.row() for verdict in verdicts)])
    causes = sum((verdict.excused for verdict in verdicts), Counter())
    if causes:
        print("\nKnown causes")
    for cause, count in sorted(causes.items(), key=lambda pair: pair[0].name):
        where = [verdict.name for verdict in verdicts if cause in verdict.excused]
        print(f"  {cause.name} ({count}): {cause.why}\n    in {', '.join(where)}")
    for title, lines in (("Differences", "differing"), ("Crashes", "crashed")):
        said = [f"  {verdict.name} at {line}" for verdict in verdicts for line in getattr(verdict, lines)]
        if said:
            print(f"\n{title}", *said, sep="\n")


def main():
    if any(word.startswith("-") for word in sys.argv[1:]):
        print(__doc__)
        return 2
    paths = chosen(sys.argv[1:])
    if not paths or not LIBRARY.exists():
        print(f"judge: no scenario of that name in {SCENARIOS}" if not paths else f"judge: {LIBRARY} is not built", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="gpuledger-judge-") as folder, concurrent.futures.ThreadPoolExecutor((os.cpu_count() or 1) + 1) as pool:
        verdicts = list(pool.map(lambda path: judge(path, Path(folder)), paths))
    report(verdicts)
    unclean = [verdict.name for verdict in verdicts if not verdict.is_clean]
    total = [sum(column) for column in list(zip(*(verdict.row() for verdict in verdicts)))[1:]]
    print(f"RESULT judge scenarios={len(verdicts)} " + " ".join(f"{name}={value}" for name, value in zip(HEADINGS[1:], total)))
    return 1 if unclean else 0


if __name__ == "__main__":
    sys.exit(main())
