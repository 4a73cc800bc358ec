"""What each client says, in one form: facts by their name. A fact that a client cannot see is missing; one that NVML refused is `absent(reason)`,
or `absent` where the client does not say why."""
import re

from node import SPAN_US

ABSENT = "absent"
# The collector says nothing of a unit that is there.
NO_ROW = "nothing"
# The collector's words for NVML's codes.
REASONS = {1: "uninitialized", 3: "not_supported", 4: "no_permission", 6: "not_found", 9: "driver_not_loaded", 10: "timed_out", 13: "no_function",
           15: "lost", 16: "reset_required", 18: "driver_mismatch", 25: "version_mismatch", 28: "not_found", 999: "unknown"}
NO_PERMISSION, NOT_FOUND = 4, 6
MIB = 1 << 20
# Measured by which call; what is derived from something else is no fact that a viewer could see.
MEASURED = {"interval_mean", "driver_sampled", "driver_sampled_device", "driver_counter"}


def reason(answer):
    if "echo" in answer:
        return "absent(implausible)"
    return f"absent({REASONS.get(answer['error'], 'code_%s' % answer['error'])})"


def plain(answer, member=None):
    """A value, or why there is none."""
    if isinstance(answer, dict) and ("error" in answer or "echo" in answer):
        return reason(answer)
    value = answer[member] if member else answer
    return ABSENT if value is None else value


def unlabelled(label):
    """`unavailable(lost)` as the others say it; None for a label of something that was read."""
    found = re.fullmatch(r"unavailable\((\w+)\)", label or "")
    return f"absent({found[1]})" if found else None


def is_unreadable(gpu):
    """By the first calls that any sound device answers."""
    for answer in (gpu, gpu.get("uuid"), gpu.get("name")):
        if isinstance(answer, dict) and "error" in answer:
            return reason(answer)
    mig = gpu["mig"]
    return reason(mig) if isinstance(mig, dict) and mig["error"] != 3 else None


class Facts(dict):
    def processes(self, index, rows):
        """`rows`: (pid, GPU instance, memory), or why there are none."""
        if isinstance(rows, str):
            self[index, "processes"] = rows
            return
        rows = list(rows)
        self[index, "processes"] = tuple(sorted({(pid, -1 if instance is None else instance) for pid, instance, _ in rows}))
        for pid, instance, used in rows:
            self[index, "process", pid, instance, "memory"] = ABSENT if used is None else used


def of_look(seen):
    """One look of nvidia-ml-py."""
    facts = Facts({("driver",): plain(seen["driver"]), ("GPUs",): plain(seen["count"])})
    for gpu in seen["gpus"]:
        index = gpu["index"]
        facts[index, "unreadable"] = unreadable = is_unreadable(gpu)
        if unreadable:
            continue
        mig = gpu["mig"]
        facts[index, "uuid"], facts[index, "name"] = gpu["uuid"], gpu["name"]
        facts[index, "MIG"] = "unsupported" if isinstance(mig, dict) else ("off", "on")[mig]
        facts[index, "memory"] = plain(gpu["memory"], "used")
        facts[index, "gauge"], facts[index, "power"] = plain(gpu["gauge"]), plain(gpu["power_mw"])
        sound = [it for it in gpu["instances"] if isinstance(it.get("uuid"), str)]
        facts[index, "MIG devices"] = tuple(sorted((it["uuid"], it["gpu_instance"], it["compute_instance"]) for it in sound))
        for it in sound:
            facts[index, "profile of", it["uuid"]] = it["name"].split(" MIG ")[-1]
            facts[index, "instance", it["gpu_instance"], "memory"] = plain(it["memory"], "used")
        rows = rows_of(gpu)
        facts.processes(index, reason(rows) if isinstance(rows, dict) else rows)
    return facts


def rows_of(gpu):
    """Without privilege the list of a cut GPU is refused, and those of its MIG devices are not."""
    rows, parts = gpu["processes"], [it["processes"] for it in gpu["instances"] if "processes" in it]
    if isinstance(rows, dict) and rows["error"] == NO_PERMISSION and parts and all(isinstance(part, list) for part in parts):
        return [row for part in parts for row in part]
    return rows


def of_collector(probe, sample):
    """`probe` says what there is, `sample` what was measured. Memory is right where it did not change during the sample."""
    facts = Facts({("driver",): probe["driver"], ("GPUs",): len(probe["gpus"])})
    for gpu in probe["gpus"]:
        index, uuid = gpu["index"], gpu["uuid"]
        facts[index, "unreadable"] = f"absent({gpu['unreadable']})" if gpu["unreadable"] else None
        if gpu["unreadable"]:
            continue
        facts[index, "uuid"], facts[index, "name"], facts[index, "MIG"] = uuid, gpu["model"], gpu["mig"].split(",")[0]
        facts[index, "MIG devices"] = tuple(sorted((it["uuid"], it["gpu_instance"], it["compute_instance"]) for it in gpu["instances"]))
        facts |= {(index, "profile of", it["uuid"]): it["profile"] for it in gpu["instances"]}
        places = {it["placement"]: it["gpu_instance"] for it in gpu["instances"]}
        facts[index, "memory"] = NO_ROW
        facts |= {(index, "instance", instance, "memory"): NO_ROW for instance in places.values()}
        for unit in of_gpu(sample["units"], uuid):
            instance = instance_of(unit, places)
            facts[(index, "memory") if instance is None else (index, "instance", instance, "memory")] = most(unit)
        rows = [(it["pid"], instance_of(it, places), steady(it)) for it in of_gpu(sample["processes"], uuid)]
        whole = [unit for unit in of_gpu(sample["units"], uuid) if "placement" not in unit]
        listed = [unlabelled(unit["quality"].get("processes")) for unit in whole]
        facts.processes(index, next((why for why in listed if why), None) or rows)
    return facts


def of_gpu(readings, uuid):
    return [reading for reading in readings if reading["gpu"] == uuid]


def instance_of(reading, places):
    place = reading.get("placement")
    return None if place is None else places.get(f"{place['start']}:{place['size']}", f"{place['start']}:{place['size']}")


def most(unit):
    return unlabelled(unit["quality"].get("memory_byte_us")) or unit.get("memory_bytes_max", ABSENT)


def steady(process):
    return unlabelled(process["quality"].get("memory_byte_us")) or int(process.get("memory_byte_us", 0)) // SPAN_US


def of_nvitop(said):
    facts = Facts({("driver",): said["driver"] or ABSENT, ("GPUs",): len(said["gpus"])})
    for gpu in said["gpus"]:
        index = gpu["index"]
        facts[index, "unreadable"] = reason(gpu) if "error" in gpu else None if gpu["uuid"] else ABSENT
        if facts[index, "unreadable"]:
            continue
        facts[index, "uuid"], facts[index, "name"] = gpu["uuid"], gpu["name"]
        facts[index, "memory"], facts[index, "gauge"], facts[index, "power"] = plain(gpu["memory_used"]), plain(gpu["gauge"]), plain(gpu["power_mw"])
        facts[index, "MIG devices"] = tuple(sorted((it["uuid"], it["gpu_instance"], it["compute_instance"]) for it in gpu["instances"]))
        for it in gpu["instances"]:
            facts[index, "instance", it["gpu_instance"], "memory"] = plain(it["memory_used"])
        facts.processes(index, [row[:3] for row in gpu["processes"]])
        facts |= {(index, "activity of", row[0]): plain(row[3]) for row in gpu["processes"]}
    return facts


def busy_processes(look):
    """Per cent of each process in the last period, as NVML answered."""
    busy = Facts()
    for gpu in look["looks"][-1]["gpus"]:
        rows = next((rows for index, _, rows in look["periods"][-1]["gpus"] if index == gpu["index"]), None)
        for pid, *_ in gpu["processes"] if isinstance(gpu.get("processes"), list) else []:
            busy[gpu["index"], "activity of", pid] = active(rows, pid)
    return busy


def active(rows, pid):
    """A living process without a row did nothing; a row above 100 is none."""
    if isinstance(rows, dict):
        return 0 if rows["error"] == NOT_FOUND else reason(rows)
    used = [value for row, value in rows or [] if row == pid]
    return ABSENT if any(value > 100 for value in used) else used[-1] if used else 0


def of_gpustat(said):
    """Memory in MiB; nothing of MIG; a GPU that it cannot read has a name that says so."""
    facts = Facts({("driver",): said["driver_version"] or ABSENT, ("GPUs",): len(said["gpus"])})
    for gpu in said["gpus"]:
        index = gpu["index"]
        facts[index, "unreadable"] = None if gpu.get("uuid") else ABSENT
        if facts[index, "unreadable"]:
            continue
        facts[index, "uuid"], facts[index, "name"] = gpu["uuid"], gpu["name"]
        facts[index, "memory MiB"], facts[index, "gauge"] = plain(gpu["memory.used"]), plain(gpu["utilization.gpu"])
        facts[index, "power W"] = plain(gpu["power.draw"])
        if gpu["processes"] is None:
            facts[index, "pids"] = ABSENT
            continue
        facts[index, "pids"] = tuple(sorted(it["pid"] for it in gpu["processes"]))
        facts |= {(index, "pid", it["pid"], "memory MiB"): plain(it["gpu_memory_usage"]) for it in gpu["processes"]}
    return facts


def as_gpustat_sees(facts):
    """The same facts in its units."""
    seen = Facts(facts)
    for (index, *what), value in facts.items():
        number = isinstance(value, int)
        if what == ["memory"]:
            seen[index, "memory MiB"] = value // MIB if number else value
        elif what == ["power"]:
            seen[index, "power W"] = value // 1000 if number else value
        elif what == ["processes"]:
            seen[index, "pids"] = value if isinstance(value, str) else tuple(sorted({pid for pid, _ in value}))
        elif what[:1] == ["process"]:
            seen[index, "pid", what[1], "memory MiB"] = value // MIB if number else value
    return seen
