"""What nvidia-ml-py sees through the library that LD_LIBRARY_PATH names, as JSON on standard output.

A call that NVML answers with an error is kept as `{"error": code}`: that is an answer. Anything else that goes wrong is a crash."""
import json
import sys

import pynvml as n


def ask(call, *words):
    """The answer of a call, or the code it failed with."""
    try:
        return call(*words)
    except n.NVMLError as e:
        return {"error": e.value}


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def memory(handle):
    answer = ask(n.nvmlDeviceGetMemoryInfo, handle, n.nvmlMemory_v2)
    return answer if isinstance(answer, dict) else {"total": answer.total, "used": answer.used, "reserved": answer.reserved}


def processes(handle):
    """(pid, memory or None, GPU instance or None) of the three lists, each process once."""
    found = {}
    for call in (n.nvmlDeviceGetMPSComputeRunningProcesses_v3, n.nvmlDeviceGetComputeRunningProcesses_v3, n.nvmlDeviceGetGraphicsRunningProcesses_v3):
        answer = ask(call, handle)
        if isinstance(answer, dict):
            if call is n.nvmlDeviceGetComputeRunningProcesses_v3:
                return answer
            continue
        for row in answer:
            instance = None if row.gpuInstanceId == 0xFFFFFFFF else row.gpuInstanceId
            found.setdefault((row.pid, instance), row.usedGpuMemory)
    return [[pid, used, instance] for (pid, instance), used in sorted(found.items(), key=str)]


def utilization(handle):
    answer = ask(n.nvmlDeviceGetUtilizationRates, handle)
    return answer if isinstance(answer, dict) else answer.gpu


def instances(handle):
    most = ask(n.nvmlDeviceGetMaxMigDeviceCount, handle)
    found = []
    for index in range(most if isinstance(most, int) else 0):
        mig = ask(n.nvmlDeviceGetMigDeviceHandleByIndex, handle, index)
        if isinstance(mig, dict):
            continue
        found.append({
            "index": index, "uuid": text(ask(n.nvmlDeviceGetUUID, mig)), "name": text(ask(n.nvmlDeviceGetName, mig)),
            "gpu_instance": ask(n.nvmlDeviceGetGpuInstanceId, mig), "compute_instance": ask(n.nvmlDeviceGetComputeInstanceId, mig),
            "memory": memory(mig), "processes": processes(mig),
        })
    return found


def device(index):
    handle = ask(n.nvmlDeviceGetHandleByIndex, index)
    if isinstance(handle, dict):
        return {"index": index, **handle}
    mode = ask(n.nvmlDeviceGetMigMode, handle)
    return {
        "index": index, "uuid": text(ask(n.nvmlDeviceGetUUID, handle)), "name": text(ask(n.nvmlDeviceGetName, handle)),
        "memory": memory(handle), "utilization": utilization(handle), "processes": processes(handle),
        "process_utilization": utilization_rows(handle), "energy_mj": ask(n.nvmlDeviceGetTotalEnergyConsumption, handle),
        "power_mw": ask(n.nvmlDeviceGetPowerUsage, handle), "mig_mode": mode[0] if isinstance(mode, (list, tuple)) else mode,
        "instances": instances(handle),
    }


def utilization_rows(handle):
    answer = ask(n.nvmlDeviceGetProcessUtilization, handle, 0)
    return answer if isinstance(answer, dict) else [[row.pid, row.timeStamp, row.smUtil] for row in answer]


def main():
    try:
        n.nvmlInit()
    except n.NVMLError as e:
        json.dump({"error": e.value}, sys.stdout)
        return
    count = ask(n.nvmlDeviceGetCount)
    seen = {"driver": text(ask(n.nvmlSystemGetDriverVersion)), "count": count,
            "gpus": [device(index) for index in range(count if isinstance(count, int) else 0)]}
    ask(n.nvmlShutdown)
    json.dump(seen, sys.stdout)


main()
