"""The node agent beside nvitop-exporter, on one simulated node: 8 GPUs, 7 MIG instances each, 64 processes, one look a second.

Both clients run at once on the same library, twice: a measured run, and one in which each writes down the calls it makes. A bare loop makes
the recorded calls again; the CPU that costs is the simulator's own and is taken from that client. Ratios compare within the measured run.
The windows of the collector are checked against the simulator's ground truth. Nothing is asserted of times.

    make bench-collector          60 seconds; SECONDS_MEASURED=n for another length

Last line: RESULT bench-collector key=value …"""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "target" / "node"
LIBRARY = BUILT / "libgpuledger_nvml_sim.so"
GPUS, INSTANCES, PROCESSES = 8, 7, 64
LENGTH_S = int(os.environ.get("SECONDS_MEASURED", "60"))
# The agent's start is over after half a minute: what only the start needed is then given back.
WARM_UP_S = 40
SCRAPE_EVERY_S = 15
# Below this a client's own share drowns in the noise of the clock (issue of the bar).
LEAST_CPU_US = 10_000


def load(n):
    """Of the n-th process: its GPU, the first slice of its instance, how busy it is in per cent, its memory in GiB."""
    return n % GPUS, n // GPUS % INSTANCES, 5 + 7 * n % 40, 1 + n % 4


def scenario(pids):
    """Every instance busy at a level of its own; real process numbers, so that both clients find them in /proc."""
    lines = ["name: bench", "about: a full node", "gpus:"]
    for gpu in range(GPUS):
        lines.append(f"- {{uuid: GPU-00000000-0000-4000-8000-{gpu:012d}, model: h100-80, mig: on}}")
    lines.append("timeline:")
    for gpu in range(GPUS):
        for start in range(INSTANCES):
            lines.append(f"- {{at: 0s, create_instance: {{gpu: {gpu}, profile: 1g.10gb, start: {start}, gi: {7 + start}}}}}")
    for n, pid in enumerate(pids):
        gpu, start, busy, memory = load(n)
        lines.append(f"- {{at: 0s, start: {{pid: {pid}, on: [{{gpu: {gpu}, gi: {7 + start}, memory: {memory}GiB, sm: {busy}%}}]}}}}")
    return "\n".join(lines) + "\n"


class Client:
    """A running client and what it has used."""

    def __init__(self, name, command, env, port):
        self.name, self.port = name, port
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, env=env, stdout=self.log, stderr=self.log)

    def cpu_us(self):
        """CPU time of all threads in microseconds, by the scheduler's nanoseconds: ticks of 10 ms are too coarse."""
        total = 0
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            try:
                total += int((task / "schedstat").read_text().split()[0])
            except FileNotFoundError:
                pass
        return total // 1000

    def rss_kib(self):
        return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text()).group(1))

    def scrape(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=20) as answer:
            return answer.read().decode()

    def check(self):
        if self.process.poll() is not None:
            self.log.seek(0)
            sys.exit(f"bench-collector: {self.name} ended with {self.process.returncode}:\n{self.log.read().decode()[-3000:]}")

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def packaged_environment():
    """What the unit of the package sets."""
    unit = (ROOT / "deploy" / "systemd" / "gpuledger-collector.service").read_text()
    return dict(line.removeprefix("Environment=").split("=", 1) for line in unit.splitlines() if line.startswith("Environment="))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def clients(folder, record, started_us):
    """Starts both; the collector writes to a spool and a file that are really synced."""
    base = {**os.environ, "NVML_SIM_SCENARIO": str(folder / "scenario.yaml"), "NVML_SIM_START": str(started_us)}
    for key in ("NVML_SIM_CLOCK", "NVML_SIM_PROC", "NVML_SIM_RECORD"):
        base.pop(key, None)
    recorded = lambda name: {"NVML_SIM_RECORD": str(folder / f"{name}.calls")} if record else {}
    run = folder / ("recorded" if record else "measured")
    run.mkdir()
    port = free_port()
    (run / "collector.toml").write_text(
        f'node = "bench"\nnvml_library = "{LIBRARY}"\nmetrics_bind = "127.0.0.1:{port}"\n'
        f'[spool]\nfolder = "{run}/spool"\n[sink.file]\npath = "{run}/events.ndjson"\n')
    ours = Client("collector", [BUILT / "gpuledger-collector", "--config", run / "collector.toml", "run"],
                  {**base, **packaged_environment(), **recorded("collector")}, port)
    port = free_port()
    theirs = Client("nvitop-exporter",
                    [sys.executable, "-m", "nvitop_exporter", "--bind-address", "127.0.0.1", "--port", str(port), "--interval", "1"],
                    {**base, **recorded("nvitop-exporter"), "LD_LIBRARY_PATH": str(folder / "lib")}, port)
    return ours, theirs, run


def measure(folder, record):
    started_us = time.time_ns() // 1000
    ours, theirs, run = clients(folder, record, started_us)
    both = (ours, theirs)
    try:
        time.sleep(WARM_UP_S)
        for client in both:
            client.check()
        before, began = [client.cpu_us() for client in both], time.monotonic()
        metrics = ""
        for second in range(1, LENGTH_S + 1):
            time.sleep(max(0, began + second - time.monotonic()))
            if second % SCRAPE_EVERY_S == 0:
                metrics, _ = ours.scrape(), theirs.scrape()
        after, took = [client.cpu_us() for client in both], time.monotonic() - began
        rss = [client.rss_kib() for client in both]
        metrics = ours.scrape() if not metrics else metrics
        for client in both:
            client.check()
    finally:
        for client in both:
            client.end()
    return {"cpu_us": [a - b for a, b in zip(after, before)], "rss_kib": rss, "took_s": took, "metrics": metrics,
            "started_us": started_us, "run": run}


def simulator_us(folder, name):
    """CPU a bare loop needs for the recorded calls, in microseconds; and how many calls they are."""
    env = {**os.environ, "NVML_SIM_SCENARIO": str(folder / "scenario.yaml")}
    done = subprocess.run([BUILT / "gpuledger-nvml-sim", "replay", folder / f"{name}.calls", "--library", LIBRARY, "--times", "5"],
                          env=env, capture_output=True, text=True, check=True)
    figures = dict(re.findall(r"(\w+)=(\d+)", done.stdout))
    return int(figures["calls_cpu_us"]), int(figures["calls"])


def p99_ms(metrics):
    """The 99th percentile of the node's cycles, as the upper edge of its bucket, in milliseconds."""
    pairs = re.findall(r'gpuledger_collector_cycle_duration_seconds_bucket\{le="([^"]+)"\} (\d+)', metrics)
    buckets = [(float(edge), int(count)) for edge, count in pairs]
    total = max((count for _, count in buckets), default=0)
    return next((edge * 1000 for edge, count in buckets if total and count >= 0.99 * total), None)


def check_totals(measured):
    """Every window's SM-active and memory time against the ground truth of the same span."""
    windows = [json.loads(line)["data"] for line in (measured["run"] / "events.ndjson").read_text().splitlines()
               if '"gpuledger.telemetry.window.v1"' in line]
    whole = [w for w in windows if all(u["covered_us"] == 10_000_000 for u in w["units"])]
    if len(whole) < LENGTH_S // 10 - 1:
        sys.exit(f"bench-collector: only {len(whole)} of {len(windows)} windows are covered whole")
    worst, readings = 0.0, 0
    busy, memory = Counter(), Counter()
    for n in range(PROCESSES):
        gpu, start, percent, gib = load(n)
        busy[gpu, start] += percent
        memory[gpu, start] += gib * 2**30
    for window in whole:
        for unit in window["units"]:
            if "placement" not in unit:
                continue
            key = int(unit["gpu"][-12:]), unit["placement"]["start"]
            truth = 100_000 * min(100, busy[key])
            worst = max(worst, abs(unit["sm_active_us"] - truth) / 10_000_000)
            readings += 1
            if int(unit["memory_byte_us"]) != memory[key] * 10_000_000:
                sys.exit(f"bench-collector: memory of {key} is {unit['memory_byte_us']}, the timeline says {memory[key] * 10_000_000}")
    if readings != len(whole) * GPUS * INSTANCES:
        sys.exit(f"bench-collector: {readings} readings of instances in {len(whole)} windows, {GPUS * INSTANCES} each is right")
    if worst > 0.005:
        sys.exit(f"bench-collector: SM-active time is off by {worst:.2%} of a window, 0.5 % is the bound")
    return len(whole), readings, worst


def main():
    if os.environ.get("BUILT") != "1":
        subprocess.run(["cargo", "build", "--locked", "--profile", "node", "-p", "gpuledger-collector", "-p", "gpuledger-nvml-sim"], cwd=ROOT, check=True)
    sleepers = [subprocess.Popen(["sleep", "3600"]) for _ in range(PROCESSES)]
    folder = Path(tempfile.mkdtemp(prefix="gpuledger-bench-"))
    try:
        (folder / "scenario.yaml").write_text(scenario([sleeper.pid for sleeper in sleepers]))
        (folder / "lib").mkdir()
        (folder / "lib" / "libnvidia-ml.so.1").symlink_to(LIBRARY)
        measured = measure(folder, record=False)
        windows, readings, worst = check_totals(measured)
        print(f"bench-collector: {windows} windows, {readings} readings of instances equal the timeline (SM-active within {worst:.3%})")
        recorded = measure(folder, record=True)
        report(folder, measured, recorded)
    finally:
        for sleeper in sleepers:
            sleeper.kill()
        shutil.rmtree(folder, ignore_errors=True)


def report(folder, measured, recorded):
    own = []
    # The record covers warm-up and end, too: scaled to the measured time by the seconds it was written in.
    seconds = recorded["took_s"] + WARM_UP_S
    for n, name in enumerate(("collector", "nvitop-exporter")):
        simulator, calls = simulator_us(folder, name)
        simulator = simulator * measured["took_s"] / seconds
        own.append(measured["cpu_us"][n] - simulator)
        print(f"bench-collector: {name}: {measured['cpu_us'][n] / 1e6:.3f} s CPU in {measured['took_s']:.0f} s, of which the simulator "
              f"{simulator / 1e6:.3f} s ({calls / seconds:.0f} calls a second); RSS {measured['rss_kib'][n] / 1024:.1f} MiB")
    cpu_percent = measured["cpu_us"][0] / 1e4 / measured["took_s"]
    ratio = f"{own[1] / own[0]:.1f}" if min(own) >= LEAST_CPU_US else "n/a"
    p99 = p99_ms(measured["metrics"])
    settings = f"gpus={GPUS} instances={GPUS * INSTANCES} processes={PROCESSES} seconds={measured['took_s']:.0f} period_s=1 cores={os.cpu_count()}"
    print(f"bench-collector: settings: {settings}, built and started as packaged, spool and file synced, both scraped every {SCRAPE_EVERY_S} s")
    print(f"RESULT bench-collector cpu_percent={cpu_percent:.2f} rss_mib={measured['rss_kib'][0] / 1024:.1f} cpu_ratio={ratio} "
          f"rss_ratio={measured['rss_kib'][1] / measured['rss_kib'][0]:.1f} cycle_p99_ms={'n/a' if p99 is None else f'{p99:g}'}")


if __name__ == "__main__":
    main()
