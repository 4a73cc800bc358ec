"""A viewer as its users start it, on a simulated node: with the node's processes below /proc and the node's time.

    viewers.py nvitop|gpustat FOLDER

FOLDER/procfs is made for it: the files of this machine's /proc, the simulated processes of FOLDER/proc, and this very process. `nvitop -1` and
`gpustat --json` print; what nvitop's own objects say then goes to FOLDER/nvitop.json. Exit code: the viewer's."""
import json
import os
import shutil
import struct
import sys
import time
from pathlib import Path

import psutil


def processes_of(folder):
    """A procfs with what psutil wants of it."""
    shown, real, simulated = folder / "procfs", Path("/proc"), folder / "proc"
    shutil.rmtree(shown, ignore_errors=True)
    shown.mkdir()
    own = {str(os.getpid()), str(os.getppid()), "self"}
    for entry in real.iterdir():
        if not entry.name.isdigit() or entry.name in own:
            (shown / entry.name).symlink_to(entry)
    for entry in simulated.iterdir():
        if entry.name.isdigit() and entry.name not in own:
            shutil.copytree(entry, shown / entry.name, symlinks=True)
            (shown / entry.name / "cmdline").write_bytes((entry / "comm").read_bytes().strip() + b"\0")
            (shown / entry.name / "statm").write_text("0 0 0 0 0 0 0\n")
    return shown


def nvitop(folder):
    from nvitop import cli
    sys.argv = ["nvitop", "-1", "--ascii"]
    code = cli.main()
    (folder / "nvitop.json").write_text(json.dumps(nvitop_objects()))
    return code


def nvitop_objects():
    from nvitop import NA, Device, libnvml

    def plain(value):
        return None if value == NA else value

    def processes(device):
        return [[pid, plain(it.gpu_instance_id()), plain(it.gpu_memory()), plain(it.gpu_sm_utilization())] for pid, it in device.processes().items()]

    def one(device):
        return {"uuid": plain(device.uuid()), "name": plain(device.name()), "memory_used": plain(device.memory_used()), "processes": processes(device)}

    def whole(index):
        try:
            device = Device(index)
        except libnvml.NVMLError as e:
            return {"index": index, "error": e.value}
        migs = [{**one(mig), "index": mig.mig_index, "gpu_instance": plain(mig.gpu_instance_id()), "compute_instance": plain(mig.compute_instance_id())}
                for mig in device.mig_devices()]
        return {"index": index, **one(device), "instances": migs, "gauge": plain(device.gpu_utilization()), "power_mw": plain(device.power_usage())}

    try:
        return {"driver": plain(Device.driver_version()), "gpus": [whole(index) for index in range(Device.count())]}
    except libnvml.NVMLError as e:
        return {"error": e.value}


def gpustat(_folder):
    from gpustat import cli
    sys.argv = ["gpustat", "--json"]
    return cli.main()


def main():
    folder = Path(sys.argv[2])
    psutil.PROCFS_PATH = str(processes_of(folder))
    _, real_us = struct.unpack("<Qq", (folder / "clock").read_bytes())
    time.time_ns = lambda: real_us * 1000
    return {"nvitop": nvitop, "gpustat": gpustat}[sys.argv[1]](folder)


sys.exit(main())
