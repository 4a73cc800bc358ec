"""Differences and failures with a known cause: defects of the viewers, and what one side cannot know. Each is counted and printed."""
from dataclasses import dataclass

from compare import is_absent


@dataclass(frozen=True)
class Cause:
    name: str
    why: str
    # Of values that were compared; else of a client that did not end well.
    is_of_values: bool


def initialises(scene):
    return "looks" in scene.look and not isinstance(scene.look["looks"][-1]["count"], dict)


def fault(client, ended, scene):
    """What is wrong with the way a client ended; None where nothing is."""
    if ended.has_crashed:
        return "crashed"
    if client == "look":
        return None if ended.code == 0 and scene.look else "did not answer"
    if not initialises(scene):
        refused = 3 if client in ("sample", "probe") else 1
        return None if ended.code == refused else f"NVML does not initialise, and exit {refused} is right"
    if client in ("sample", "probe"):
        whole = scene.probe is not None and not any(gpu["unreadable"] for gpu in scene.probe["gpus"])
        return None if ended.code == (0 if whole else 1) else f"exit {0 if whole else 1} is right"
    return None if ended.code == 0 else "failed"


def cause_of_end(client, ended, scene, scenario):
    return None


def cause_of_difference(difference, scene, scenario):
    return None
