"""Who agrees with the collector on what."""
from dataclasses import dataclass

import facts
from facts import ABSENT, MEASURED, of_gpu, unlabelled
from node import PERIOD_US, SPAN_US, unix_us

# Whole per cent, rounded by the driver in each period.
SAMPLED_US, COUNTED_US = SPAN_US // 100 + 1, SPAN_US // 1000
GAUGES = {"gauge", "power", "activity of"}
FIXED = {"driver", "GPUs", "unreadable", "uuid", "name", "MIG", "MIG devices", "profile of"}


@dataclass(frozen=True)
class Difference:
    viewer: str
    what: tuple
    ours: object
    theirs: object

    def __str__(self):
        what = " ".join(str(word) for word in self.what if word is not None)
        what = f"GPU {what}" if isinstance(self.what[0], int) else what
        return f"{self.viewer}: {what}: collector {short(self.ours)}, {self.viewer} {short(self.theirs)}"


def short(value):
    text = str(value)
    return text if len(text) <= 160 else text[:157] + "..."


def is_absent(value):
    return isinstance(value, str) and value.startswith(ABSENT)


def agree(ours, theirs):
    """Absent is absent, for the same reason where both give one."""
    if is_absent(ours) and is_absent(theirs):
        return ours == theirs or ABSENT in (ours, theirs)
    return ours == theirs


def of_scene(scene):
    """(differences, number of values compared) of one instant."""
    compared, found = 0, []
    for viewer, ours, theirs, margins in sides(scene):
        for what in sorted(set(ours) & set(theirs), key=str):
            compared += 1
            margin = margins.get(what)
            near = margin is not None and not isinstance(ours[what], str) and not isinstance(theirs[what], str)
            if not (abs(ours[what] - theirs[what]) <= margin if near else agree(ours[what], theirs[what])):
                found.append(Difference(viewer, what, ours[what], theirs[what]))
    return found, compared


def sides(scene):
    """(viewer, the collector's facts, the viewer's facts, margins by fact)."""
    looks = [facts.of_look(seen) for seen in scene.look.get("looks", [])]
    if scene.probe is None or scene.sample is None or not looks:
        return
    last = looks[-1]
    ours = facts.of_collector(scene.probe, scene.sample)
    changing = {what for what in last for look in looks if look.get(what) != last[what]}
    changing |= {what for look in looks for what in look if what not in last}
    # The means are over the whole sample: they are compared with a look at its end only where nothing changed.
    changing |= {(index, "processes") for index, *what in changing if what[:1] == ["process"]}
    # Where calls take long, everybody measured at another time: only what stays is compared.
    late = set() if scene.is_undelayed else {what for what in ours if not FIXED.intersection(what)}
    steady = {what: value for what, value in ours.items() if what not in changing | late}
    # Gauges are no part of a window; nvidia-ml-py, which is compared with the collector, says what NVML answers.
    gauges = {what: value for what, value in (last | facts.busy_processes(scene.look)).items() if GAUGES.intersection(what[1:2]) and scene.is_undelayed}
    yield "nvidia-ml-py", steady, last, {}
    if scene.nvitop and "error" not in scene.nvitop:
        yield "nvitop", steady | gauges, facts.of_nvitop(scene.nvitop), {}
    if scene.gpustat:
        yield "gpustat", facts.as_gpustat_sees(steady | gauges), facts.of_gpustat(scene.gpustat), {}
    if scene.is_undelayed:
        yield ("nvidia-ml-py", *of_interval(scene))


def of_interval(scene):
    """What was measured between the first look and the last: (the collector's, nvidia-ml-py's, margins)."""
    ours, theirs, margins = {}, {}, {}
    start_us = unix_us(scene.sample["start"])

    def compare(what, mine, other, margin=0):
        if other is not None:
            ours[what], theirs[what], margins[what] = mine, other, margin

    for gpu in scene.probe["gpus"]:
        index = gpu["index"]
        history = [next((it for it in seen["gpus"] if it["index"] == index), {}) for seen in scene.look["looks"]]
        if gpu["unreadable"] or any("uuid" not in seen for seen in history):
            continue
        places = {it["placement"]: it["gpu_instance"] for it in gpu["instances"]}
        for unit in of_gpu(scene.sample["units"], gpu["uuid"]):
            instance = facts.instance_of(unit, places)
            name = (index,) if instance is None else (index, "instance", instance)
            readings = [memory_of(seen, instance) for seen in history]
            if "memory_byte_us" in unit and all(isinstance(used, int) for used in readings):
                compare((*name, "memory over time"), int(unit["memory_byte_us"]), sum(readings[:-1]) * PERIOD_US)
            sm(compare, (*name, "SM-active us"), unit, [active_of_unit(it, index, instance, unit) for it in scene.look["periods"]], start_us)
        energy(compare, index, of_gpu(scene.sample["units"], gpu["uuid"]), [seen["energy_mj"] for seen in history])
        processes = of_gpu(scene.sample["processes"], gpu["uuid"])
        for process in processes:
            is_alone = [it["pid"] for it in processes].count(process["pid"]) == 1
            if is_alone and is_there(history, process["pid"]):
                what = (index, "process", process["pid"], "SM-active us")
                sm(compare, what, process, [active_of_process(it, index, process["pid"]) for it in scene.look["periods"]], start_us)
    return ours, theirs, margins


def memory_of(seen, instance):
    if instance is None:
        return facts.plain(seen["memory"], "used")
    return next((facts.plain(it["memory"], "used") for it in seen["instances"] if it.get("gpu_instance") == instance), ABSENT)


def is_there(history, pid):
    return all(isinstance(seen["processes"], list) and pid in {row[0] for row in seen["processes"]} for seen in history)


def energy(compare, index, units, counter):
    whole = next((unit for unit in units if "placement" not in unit), None)
    if whole is None:
        return
    ours = whole.get("energy_mj", unlabelled(whole["quality"].get("energy_mj")) or ABSENT)
    if all(isinstance(value, int) for value in counter):
        is_growing = counter == sorted(counter)
        compare((index, "energy mJ"), ours, counter[-1] - counter[0] if is_growing else None)
    elif all(isinstance(value, dict) for value in counter):
        compare((index, "energy mJ"), ours, facts.reason(counter[-1]))


def sm(compare, what, reading, periods, start_us):
    """`periods`: per cent in each period, or why not. A reading that covers a part only is compared where the parts are alike."""
    label = reading["quality"].get("sm_active_us")
    covered_us = reading.get("coverage", {}).get("sm_active_us", reading["covered_us"])
    if label not in MEASURED or not covered_us or any(not isinstance(it, (int, float)) for it in periods) or is_young(reading, label, start_us):
        return
    margin = COUNTED_US if label == "interval_mean" else SAMPLED_US
    if covered_us == SPAN_US:
        compare(what, reading["sm_active_us"], round(sum(periods) / 100 * PERIOD_US), margin)
    elif max(periods) - min(periods) <= 1:
        compare(what, reading["sm_active_us"], round(sum(periods) / len(periods) / 100 * covered_us), margin)


def is_young(reading, label, start_us):
    """The driver's accounting takes a sample a second: of a process that just began, it says little of the interval."""
    return label == "driver_counter" and start_us - unix_us(reading["started_at"]) < PERIOD_US


def active_of_unit(period, index, instance, unit):
    if unit["quality"].get("sm_active_us") == "interval_mean":
        return next((facts.plain(it[2]) for it in period["units"] if it[:2] == [index, instance]), None)
    samples = next((it[1] for it in period["gpus"] if it[0] == index), None)
    return facts.plain(samples)


def active_of_process(period, index, pid):
    return facts.active(next((it[2] for it in period["gpus"] if it[0] == index), None), pid)
