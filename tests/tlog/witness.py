"""aics-witness, a whole witness over HTTP, cosigns the log of `serve --only audit`."""
import importlib.util
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from aics_tlog import parse_note, parse_vkey, verify_checkpoint

ROOT = Path(__file__).resolve().parents[2]
TOOL = Path(sys.executable).with_name("aics-witness")
PATIENCE_S = 60


class Wrong(Exception):
    """The witness does not cosign."""


def audit():
    """The runner of tests/audit, which starts a log of its own."""
    spec = importlib.util.spec_from_file_location("audit_runner", ROOT / "tests" / "audit" / "__main__.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tool(*words):
    done = subprocess.run([TOOL, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise Wrong(f"aics-witness {words[0]} exit {done.returncode}: {done.stderr[-500:]}")
    return done.stdout


def free_port():
    import socket
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def cosigned(log, witness_key, least):
    """The published checkpoint, once it has at least so many leaves and the witness's line; the judge verifies both signatures."""
    until = time.monotonic() + PATIENCE_S
    said = "no checkpoint"
    while time.monotonic() < until:
        shown = subprocess.run([log.program, "audit", "checkpoint"], env=log.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if shown.returncode == 0:
            verdict = verify_checkpoint(parse_note(shown.stdout), parse_vkey(log.key), [parse_vkey(witness_key)], 1)
            if verdict.ok and verdict.size >= least:
                return verdict.size
            said = verdict.error or f"size {verdict.size}"
        time.sleep(0.2)
    raise Wrong(f"not cosigned within {PATIENCE_S} s: {said}")


def judge():
    runner = audit()
    with tempfile.TemporaryDirectory(prefix="gpuledger-witness-") as home:
        home = Path(home)
        log = runner.Log(home)
        log.program = runner.PROGRAM
        config, port = home / "witness.json", free_port()
        key = tool("init", "--config", config, "--name", "witness.example/judge", "--listen", f"127.0.0.1:{port}").strip().splitlines()[-1]
        if not re.fullmatch(r"\S+\+[0-9a-f]{8}\+\S+", key):
            raise Wrong(f"aics-witness init says no key: {key}")
        tool("add-log", "--config", config, "--origin", log.key.split("+")[0], "--vkey", log.key)
        log.env["GPULEDGER_AUDIT_WITNESSES"] = f'[{{url="http://127.0.0.1:{port}", key="{key}"}}]'
        served = subprocess.Popen([TOOL, "serve", "--config", config], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        process = log.serve()
        try:
            sizes = []
            # Twice, so that the second head needs a proof from the first one that the witness saw.
            for least in (300, 700):
                log.record(least - log.recorded)
                sizes.append(cosigned(log, key, least))
            state = json.loads(tool("status", "--config", config, "--json"))
        finally:
            for one in (process, served):
                one.send_signal(signal.SIGTERM)
                one.wait(30)
            log.end()
    print(f"RESULT judge-witness cosigned={len(sizes)} sizes={','.join(map(str, sizes))} logs={len(state.get('logs', []))}", flush=True)
