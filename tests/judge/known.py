"""Ends and differences with a known cause: defects of the viewers, and what one side cannot know. Each is counted and printed."""
from dataclasses import dataclass

from compare import ABSENT, is_absent
from facts import NO_ROW, is_unreadable, of_gpu


@dataclass(frozen=True)
class Cause:
    name: str
    why: str
    # Of values that were compared; else of a client that did not end well.
    is_of_values: bool = True


HOLES = Cause("nvitop, holes", "it stops at the first free index of MIG devices")
ONE_INSTANCE = Cause("nvitop, one instance a process", "it keeps one row a process number, so a process in two MIG instances is shown in one")
ZERO = Cause("nvitop, zero for refused", "where NVML refuses the samples of processes it shows 0 % (nvtop issue 256 is of the same kind)")
GARBAGE = Cause("nvitop, garbage rows", "it shows rows of utilisation that cannot be true (nvtop issue 110)")
BOOT_TIME = Cause("nvitop, stamps since boot", "it asks for samples by Unix time, and this driver stamps them by the time since boot")
HOST_MEMORY = Cause("nvitop, unified memory", "where NVML refuses the memory of a part that shares it with the host, it shows the host's")
LONG_RECORDS = Cause("nvidia-ml-py, long records", "drivers 535.43 to 535.86 write 32 bytes a process where its newest list reads 24 (nvitop issues "
                     "79, 88, 89); the list before is compared", False)
GPUSTAT_LONG_RECORDS = Cause("gpustat, long records", "it asks for nvidia-ml-py's newest list of processes only, and believes it")
PARENT_ONLY = Cause("gpustat, no privilege under MIG", "it asks the GPU, which refuses, and not its MIG devices, which answer")
NVITOP_PARENT_ONLY = Cause("nvitop, no privilege under MIG", "where the GPU refuses its list it shows no process, though its MIG devices answer")
NOBODY = Cause("no entry in /proc", "the collector tells no process that the kernel does not know: whose it is cannot be known (gpustat issue 16)")
NAMESPACE = Cause("another PID namespace", "NVML's process numbers are not those of this /proc: the collector tells no process, and `probe` says so")
UNPLACED = Cause("instance without a place", "without privilege NVML does not tell where an instance stands, and a window names it by its place; the GPU's "
                 "`quality` says so under `instances`")
DEVICE_ENDS = {viewer: Cause(f"{viewer}, one GPU ends it", "a GPU that answers neither UNKNOWN nor GPU_IS_LOST but another error ends it", False)
               for viewer in ("nvitop", "gpustat")}


def fault(client, ended, scene):
    """What is wrong with the way a client ended; None where nothing is."""
    if ended.has_crashed:
        return "crashed"
    if client == "look":
        has_garbage = any(gpu.get("has_garbage") for seen in scene.look.get("looks", []) for gpu in seen["gpus"])
        return "did not answer" if ended.code or not scene.look else "rows that cannot be" if has_garbage else None
    right = right_codes(client, scene)
    return None if ended.code in right else f"exit {' or '.join(map(str, right))} is right"


def right_codes(client, scene):
    """The collector: 1 where a GPU cannot be read, 3 without a driver; the viewers: 1 without a driver."""
    is_ours = client in ("sample", "probe")
    # The sample begins with the first look; the others begin where it ends.
    looks = scene.look.get("looks", [])
    if not looks or isinstance(looks[0 if client == "sample" else -1]["count"], dict):
        return [3 if is_ours else 1]
    if not is_ours:
        return [0]
    # A driver that went during the sample has left every GPU that it listed.
    if isinstance(looks[-1]["count"], dict) or any(is_unreadable(gpu) for gpu in looks[-1]["gpus"]):
        return [1]
    # One reading that failed makes no GPU that cannot be read.
    return [0]


def cause_of_end(client, ended, scene, scenario):
    """The cause of a fault that is a viewer's own, if it is a known one."""
    refusals = {is_unreadable(gpu) for gpu in scene.look["looks"][-1]["gpus"]} if scene.look.get("looks") else set()
    is_by_nvml = "pynvml.NVMLError" in ended.last_words() or ended.err.startswith("Error on querying NVIDIA devices")
    if client in DEVICE_ENDS and is_by_nvml and refusals - {None, "absent(lost)", "absent(unknown)"}:
        return DEVICE_ENDS[client]
    return LONG_RECORDS if client == "look" and ended.code == 0 and has_long_records(scenario) else None


def has_long_records(scenario):
    return (535, 43) <= scenario.driver[:2] <= (535, 86)


def cause_of_difference(difference, scene, scenario):
    """The first that fits."""
    rules = {"nvitop": (of_nvitop, of_rows), "gpustat": (of_gpustat, of_rows), "nvidia-ml-py": (of_rows,)}
    causes = (rule(difference, scene, scenario) for rule in rules[difference.viewer])
    return next((cause for cause in causes if cause), None)


def of_nvitop(difference, scene, scenario):
    what, ours, theirs = difference.what[1:], difference.ours, difference.theirs
    gpu = next(gpu for gpu in scene.look["looks"][-1]["gpus"] if gpu["index"] == difference.what[0])
    if what == ("MIG devices",):
        dense = [mig for place, mig in enumerate(gpu["instances"]) if mig["index"] == place]
        return HOLES if set(theirs) == {(mig["uuid"], mig["gpu_instance"], mig["compute_instance"]) for mig in dense} else None
    if what == ("processes",) and set(theirs) < set(ours) and {pid for pid, _ in theirs} == {pid for pid, _ in ours}:
        return ONE_INSTANCE
    if what == ("processes",) and is_refused(gpu) and not theirs:
        return NVITOP_PARENT_ONLY
    if what[0] == "activity of":
        return of_nvitop_activity(ours, theirs, scenario)
    return HOST_MEMORY if what == ("memory",) and ours == "absent(not_supported)" else None


def of_nvitop_activity(ours, theirs, scenario):
    if is_absent(ours):
        return ZERO if theirs == 0 else GARBAGE if ours == ABSENT and theirs > 100 else None
    return BOOT_TIME if scenario.counts_since_boot and (theirs == 0 or is_absent(theirs)) else None


def of_gpustat(difference, scene, _scenario):
    gpu = scene.look["looks"][-1]["gpus"][difference.what[0]]
    return PARENT_ONLY if difference.what[1:] == ("pids",) and is_refused(gpu) and is_absent(difference.theirs) else None


def is_refused(gpu):
    """NVML refused the list of processes for lack of privilege."""
    return isinstance(gpu["processes"], dict) and gpu["processes"]["error"] == 4


def of_rows(difference, scene, scenario):
    """Lists of processes, and readings of instances without a place. What cannot be excused piece by piece is not excused."""
    index, what = difference.what[0], difference.what[1]
    if what == "instance" and difference.ours == NO_ROW:
        return UNPLACED if is_unplaced(difference.what[2], index, scene) else None
    if what not in ("processes", "pids", "process", "pid"):
        return None
    if has_long_records(scenario) and difference.viewer == "gpustat":
        return GPUSTAT_LONG_RECORDS
    if what not in ("processes", "pids") or is_absent(difference.ours) or is_absent(difference.theirs):
        return None
    if scene.probe["attribution"] and not difference.ours:
        return NAMESPACE
    missing, added = set(difference.theirs) - set(difference.ours), set(difference.ours) - set(difference.theirs)
    pairs = {row if isinstance(row, tuple) else (row, None) for row in missing}
    if added or not pairs:
        return None
    if all(pid not in scene.shown for pid, _ in pairs):
        return NOBODY
    return UNPLACED if all(is_unplaced(instance, index, scene) for _, instance in pairs) else None


def is_unplaced(gpu_instance, index, scene):
    gpu = scene.probe["gpus"][index]
    whole = [unit for unit in of_gpu(scene.sample["units"], gpu["uuid"]) if "placement" not in unit]
    is_said = any("instances" in unit["quality"] for unit in whole)
    places = [it["placement"] for it in gpu["instances"] if it["gpu_instance"] == gpu_instance]
    return is_said and bool(places) and all(place.startswith("unavailable") for place in places)
