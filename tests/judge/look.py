"""What nvidia-ml-py sees through the library that LD_LIBRARY_PATH names, over some periods of the clock file, as JSON on standard output.

    look.py SINCE_US PERIOD_US PERIODS

It looks, moves the clock one period on, looks again, and so on: PERIODS + 1 looks, and what was measured in each period between two of
them. SINCE_US is the first look's time on the clock of the driver's own timestamps. A call that NVML answers with an error is kept as
`{"error": code}`: that is an answer. Anything else that goes wrong is a crash."""
import json
import os
import struct
import sys

import pynvml as n

FUNCTION_NOT_FOUND, NOT_FOUND, VERSION_MISMATCH = 13, 6, 25
NO_INSTANCE, PID_MAX = 0xFFFFFFFF, 1 << 22
PROCESS_LISTS = ("MPSComputeRunningProcesses", "ComputeRunningProcesses", "GraphicsRunningProcesses")


def ask(call, *words):
    """The answer of a call, or the code it failed with."""
    try:
        return call(*words)
    except n.NVMLError as e:
        return {"error": e.value}


def failed(answer, *codes):
    """Whether a call failed, with one of the codes where some are given."""
    return isinstance(answer, dict) and "error" in answer and (not codes or answer["error"] in codes)


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def memory(handle):
    """The second version tells `reserved` apart; drivers before 510 have only the first."""
    answer = ask(n.nvmlDeviceGetMemoryInfo, handle, n.nvmlMemory_v2)
    if failed(answer, FUNCTION_NOT_FOUND, VERSION_MISMATCH):
        answer = ask(n.nvmlDeviceGetMemoryInfo, handle)
    return answer if failed(answer) else {"total": answer.total, "used": answer.used}


def rows(handle, name):
    """The newest list that the driver has, and fills in with rows that can be."""
    answer = ask(getattr(n, f"nvmlDeviceGet{name}_v3"), handle)
    return ask(getattr(n, f"nvmlDeviceGet{name}_v2"), handle) if failed(answer, FUNCTION_NOT_FOUND) or is_garbage(answer) else answer


def is_garbage(answer):
    return not failed(answer) and any(not 0 < row.pid <= PID_MAX for row in answer)


def processes(handle):
    """[pid, GPU instance or None, memory or None] of the three lists, each process once an instance, with its memory summed over compute
    instances. An error is that of the compute list: not every device has the others."""
    contexts, answers = {}, {name: rows(handle, name) for name in PROCESS_LISTS}
    if failed(answers["ComputeRunningProcesses"]):
        return answers["ComputeRunningProcesses"]
    for answer in answers.values():
        for row in [] if failed(answer) else answer:
            ids = tuple(None if value == NO_INSTANCE else value for value in (row.gpuInstanceId, row.computeInstanceId))
            contexts.setdefault((row.pid, *ids), row.usedGpuMemory)
    found = {}
    for (pid, gpu_instance, _), used in contexts.items():
        before = found.get((pid, gpu_instance), 0)
        found[pid, gpu_instance] = None if None in (used, before) else before + used
    return [[pid, instance, used] for (pid, instance), used in sorted(found.items(), key=str)]


def instances(handle):
    """MIG devices by their index, holes skipped."""
    most = ask(n.nvmlDeviceGetMaxMigDeviceCount, handle)
    found = []
    for index in range(0 if failed(most) else most):
        mig = ask(n.nvmlDeviceGetMigDeviceHandleByIndex, handle, index)
        if failed(mig, NOT_FOUND):
            continue
        found.append({"index": index, **mig} if failed(mig) else {
            "index": index, "uuid": text(ask(n.nvmlDeviceGetUUID, mig)), "name": text(ask(n.nvmlDeviceGetName, mig)),
            "gpu_instance": ask(n.nvmlDeviceGetGpuInstanceId, mig), "compute_instance": ask(n.nvmlDeviceGetComputeInstanceId, mig),
            "memory": memory(mig), "processes": processes(mig)})
    return found


def device(index):
    handle = ask(n.nvmlDeviceGetHandleByIndex, index)
    if failed(handle):
        return {"index": index, **handle}
    mode, gauge = ask(n.nvmlDeviceGetMigMode, handle), ask(n.nvmlDeviceGetUtilizationRates, handle)
    return {
        "index": index, "uuid": text(ask(n.nvmlDeviceGetUUID, handle)), "name": text(ask(n.nvmlDeviceGetName, handle)),
        "mig": mode if failed(mode) else mode[0], "memory": memory(handle), "processes": processes(handle), "instances": instances(handle),
        "gauge": gauge if failed(gauge) else gauge.gpu, "energy_mj": ask(n.nvmlDeviceGetTotalEnergyConsumption, handle),
        "power_mw": ask(n.nvmlDeviceGetPowerUsage, handle),
        "has_garbage": any(is_garbage(ask(getattr(n, f"nvmlDeviceGet{name}_v3"), handle)) for name in PROCESS_LISTS),
    }


def look(clock):
    count = ask(n.nvmlDeviceGetCount)
    return {"driver": text(ask(n.nvmlSystemGetDriverVersion)), "count": count,
            "gpus": [device(index) for index in range(0 if failed(count) else count)], "at_us": clock.read()[0]}


class Clock:
    """The clock file: microseconds since boot, microseconds of Unix time. Waiting moves both on."""

    def __init__(self, path):
        self.file = os.open(path, os.O_RDWR)

    def read(self):
        return struct.unpack("<Qq", os.pread(self.file, 16, 0))

    def wait_until(self, monotonic_us):
        up, real = self.read()
        if monotonic_us > up:
            os.pwrite(self.file, struct.pack("<Qq", monotonic_us, real + monotonic_us - up), 0)


class Activity:
    """How busy things were between two looks, per cent: by GPM of the GPU and its GPU instances, by the driver's samples of the GPU and of its
    processes."""

    def __init__(self, seen, since_us):
        self.since_us, self.samples = since_us, {}
        for gpu in seen["gpus"]:
            for instance in [None] + sorted({mig["gpu_instance"] for mig in gpu.get("instances", []) if isinstance(mig.get("gpu_instance"), int)}):
                self.samples[gpu["index"], instance] = self.sample(gpu["index"], instance)

    @staticmethod
    def sample(index, instance):
        handle = ask(n.nvmlDeviceGetHandleByIndex, index)
        support = handle if failed(handle) else ask(n.nvmlGpmQueryDeviceSupport, handle)
        if failed(support) or not support.isSupportedDevice:
            return support if failed(support) else {"error": n.NVML_ERROR_NOT_SUPPORTED}
        sample = ask(n.nvmlGpmSampleAlloc)
        if failed(sample):
            return sample
        taken = ask(n.nvmlGpmSampleGet, handle, sample) if instance is None else ask(n.nvmlGpmMigSampleGet, handle, instance, sample)
        return taken if failed(taken) else sample

    def until(self, later):
        """`later`: the activity that began where this one ends."""
        units = [[index, instance, self.gpm(sample, later.samples.get((index, instance)))] for (index, instance), sample in self.samples.items()]
        return {"units": units, "gpus": [[index, *self.rings(index)] for index, instance in self.samples if instance is None]}

    @staticmethod
    def gpm(first, second):
        if second is None or failed(first) or failed(second):
            return first if failed(first) else second or {"error": NOT_FOUND}
        question = n.c_nvmlGpmMetricsGet_t()
        question.version, question.numMetrics, question.sample1, question.sample2 = n.NVML_GPM_METRICS_GET_VERSION, 1, first, second
        question.metrics[0].metricId = n.NVML_GPM_METRIC_SM_UTIL
        answer = ask(n.nvmlGpmMetricsGet, question)
        metric = question.metrics[0]
        if failed(answer) or metric.nvmlReturn:
            return answer if failed(answer) else {"error": metric.nvmlReturn}
        return metric.value if metric.metricId == n.NVML_GPM_METRIC_SM_UTIL else {"echo": metric.metricId}

    def rings(self, index):
        handle = ask(n.nvmlDeviceGetHandleByIndex, index)
        if failed(handle):
            return handle, handle
        samples = ask(n.nvmlDeviceGetSamples, handle, n.NVML_GPU_UTILIZATION_SAMPLES, self.since_us)
        if not failed(samples):
            values = [sample.sampleValue.uiVal for sample in samples[1]]
            samples = sum(values) / len(values) if values else None
        of_processes = ask(n.nvmlDeviceGetProcessUtilization, handle, self.since_us)
        if not failed(of_processes):
            of_processes = [[row.pid, row.smUtil] for row in of_processes]
        return samples, of_processes


def main():
    since_us, period_us, periods = map(int, sys.argv[1:])
    clock = Clock(os.environ["NVML_SIM_CLOCK"])
    began = ask(n.nvmlInit)
    if failed(began):
        json.dump(began, sys.stdout)
        return
    start_us = clock.read()[0]
    looks, measured = [look(clock)], []
    activity = Activity(looks[0], since_us)
    for period in range(1, periods + 1):
        clock.wait_until(start_us + period * period_us)
        looks.append(look(clock))
        later = Activity(looks[-1], since_us + period * period_us)
        measured.append(activity.until(later))
        activity = later
    ask(n.nvmlShutdown)
    json.dump({"looks": looks, "periods": measured}, sys.stdout)


main()
