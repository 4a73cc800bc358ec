"""What the judge must know of a scenario file: when its timeline changes, and how its clocks stand. The simulator alone knows what happens."""
import re
from datetime import datetime

import yaml

SECOND_US = 1_000_000
UNITS_US = {"d": 86_400 * SECOND_US, "h": 3_600 * SECOND_US, "m": 60 * SECOND_US, "s": SECOND_US, "ms": 1_000, "us": 1}
MOST_INSTANTS = 8


def span_us(text):
    """`1m30s`, `+5m`, `-2m` in microseconds."""
    sign = -1 if text.startswith("-") else 1
    return sign * sum(int(number) * UNITS_US[unit] for number, unit in re.findall(r"(\d+)(ms|us|d|h|m|s)", text))


class Scenario:
    def __init__(self, path):
        # Without types: `on` is a word here, not a truth value.
        words = yaml.load(path.read_text(), yaml.BaseLoader)
        self.path, self.name = path, words["name"]
        self.start_us = round(datetime.fromisoformat(words.get("start", "2026-10-01T00:00:00Z").replace("Z", "+00:00")).timestamp()) * SECOND_US
        self.uptime_us = span_us(words.get("uptime", "1h"))
        driver = words.get("driver", {})
        self.driver = tuple(map(int, driver.get("version", "580.105.08").split(".")))
        self.counts_since_boot = driver.get("timestamps") == "boottime"
        self.timeline = [(span_us(step["at"]), *[(word, step[word]) for word in step if word != "at"][0]) for step in words.get("timeline", [])]

    def instants(self):
        """Right after each change; of many, some spread evenly, with the first and the last."""
        times = sorted({at for at, _, _ in self.timeline} | {0})
        if len(times) > MOST_INSTANTS:
            times = [times[round(place * (len(times) - 1) / (MOST_INSTANTS - 1))] for place in range(MOST_INSTANTS)]
        return times

    def clocks(self, at_us):
        """Microseconds since boot and of Unix time at an instant of the timeline; steps of the real-time clock move that one alone."""
        jumped = sum(span_us(words["by"]) for at, action, words in self.timeline if action == "jump_clock" and at <= at_us)
        return self.uptime_us + at_us, self.start_us + at_us + jumped

    def steps(self, action, at_us):
        """Steps of a kind up to an instant."""
        return [words for at, name, words in self.timeline if name == action and at <= at_us]
