"""A simulated node held at an instant, and the clients that look at it."""
import json
import os
import struct
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILT = ROOT / "target" / "debug"
LIBRARY = BUILT / "libgpuledger_nvml_sim.so"
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
PATIENCE_S = 120
# `sample` measures two periods of the setting's default.
PERIOD_US, PERIODS = 1_000_000, 2
SPAN_US = PERIOD_US * PERIODS


@dataclass(frozen=True)
class Ended:
    """How a client ended."""
    code: int
    out: str
    err: str

    @property
    def has_crashed(self):
        """A signal, or an exception nobody caught. One that was caught and logged is none."""
        caught = "Traceback (most recent call last)" in self.err and self.code != 0
        return self.code < 0 or self.code == 124 or caught or "panicked at" in self.err

    def last_words(self):
        lines = [line for line in (self.err or self.out).strip().splitlines() if line.strip()]
        return f"exit {self.code}: {lines[-1].strip()[:200] if lines else 'silent'}"


@dataclass(frozen=True)
class Scene:
    """What everybody saw of one instant. JSON, or None where a client had nothing to say."""
    at_us: int
    # From which instant on the interval was measured, of the timeline.
    since_us: int
    ended: dict
    look: dict
    probe: dict
    sample: dict
    nvitop: dict
    gpustat: dict
    # Processes that /proc shows at the end.
    shown: frozenset
    # Nothing took longer than it should: the collector and the look speak of the same interval.
    is_undelayed: bool


class Node:
    def __init__(self, scenario, folder):
        self.scenario, self.folder = scenario, folder
        (folder / "lib").mkdir(parents=True)
        subprocess.run([BUILT / "gpuledger-nvml-sim", "library", scenario.path, folder / "lib" / "libnvidia-ml.so.1"], check=True, capture_output=True)
        (folder / "proc").mkdir()
        settings = {"node": "judge", "nvml_library": folder / "lib" / "libnvidia-ml.so.1", "proc_root": folder / "proc",
                    "clock_file": folder / "clock", "pod_resources_socket": folder / "no.sock"}
        (folder / "collector.toml").write_text("".join(f'{key} = "{value}"\n' for key, value in settings.items()))
        ours = {"NVML_SIM_SCENARIO": scenario.path, "NVML_SIM_CLOCK": folder / "clock", "NVML_SIM_PROC": folder / "proc", "COLUMNS": "100",
                "LD_LIBRARY_PATH": folder / "lib", "TERM": "xterm-256color", "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8"}
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("NVML_SIM_", "GPULEDGER_"))}
        self.env = {**clean, **{key: str(value) for key, value in ours.items()}}

    def hold(self, at_us):
        """Sets the clock to an instant of the timeline."""
        (self.folder / "clock").write_bytes(struct.pack("<Qq", *self.scenario.clocks(at_us)))

    def run(self, *words):
        try:
            done = subprocess.run([str(word) for word in words], env=self.env, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            return Ended(124, "", f"did not end within {PATIENCE_S} s")
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())

    def collector(self, *words):
        return self.run(BUILT / "gpuledger-collector", "--config", self.folder / "collector.toml", *words, "--format", "json")

    def watch(self, at_us):
        """Everybody looks: first the collector's sample, which moves the clock; a look over the same interval; the others where it ended."""
        self.hold(at_us)
        ended = {"sample": self.collector("sample", "--once")}
        sample = read(ended["sample"].out)
        # It may have waited, for the next minute, or for a call that takes long.
        since_us = self.instant_of(sample["start"], at_us) if sample else at_us
        self.hold(since_us)
        up_us, real_us = self.scenario.clocks(since_us)
        ended["look"] = self.run(sys.executable, HERE / "look.py", up_us if self.scenario.counts_since_boot else real_us, PERIOD_US, PERIODS)
        look = read(ended["look"].out) or {}
        until_us = since_us + SPAN_US
        self.hold(until_us)
        ended["probe"] = self.collector("probe")
        shown = frozenset(int(entry.name) for entry in (self.folder / "proc").iterdir() if entry.name.isdigit())
        for viewer in ("nvitop", "gpustat"):
            self.hold(until_us)
            ended[viewer] = self.run(sys.executable, HERE / "viewers.py", viewer, self.folder)
        said = self.folder / "nvitop.json"
        nvitop = read(said.read_text()) if said.exists() else None
        said.unlink(missing_ok=True)
        times = [seen["at_us"] for seen in look.get("looks", [])]
        is_undelayed = bool(sample) and times == [up_us + period * PERIOD_US for period in range(PERIODS + 1)] and length_us(sample) == SPAN_US
        return Scene(at_us, since_us, ended, look, read(ended["probe"].out), sample, nvitop, read(ended["gpustat"].out), shown, is_undelayed)

    def instant_of(self, time, near_us):
        """An instant of the timeline by the real-time clock, as that stood at `near_us`."""
        return near_us + unix_us(time) - self.scenario.clocks(near_us)[1]


def read(text):
    try:
        return json.loads(text)
    except ValueError:
        return None


def unix_us(time):
    return (datetime.fromisoformat(time.replace("Z", "+00:00")) - EPOCH) // timedelta(microseconds=1)


def length_us(sample):
    return unix_us(sample["end"]) - unix_us(sample["start"])
