#!/usr/bin/env python3
"""Runs the worked examples of this folder: events in, exact numbers out.

    FRESH_DB='deploy/local/postgres.sh fresh-db' GPULEDGER=target/debug/gpuledger run.py [FILE.yaml ...]

Each example has three passes in databases of their own, which must give the same (rule A-5): events in the order of the file; each
twice, shuffled, in three replays; backwards, one replay for each. `order: fixed` has the first alone. After each, `ledger verify`.
Rows are compared without order on the keys the expected row names; rows of zeros count as absent; seconds compare as numbers.
The last line is `N held, M short`; exit 0 when all held.
"""
import concurrent.futures
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
QUANTITIES = ("allocated_us", "unit_seconds", "gpu_seconds", "compute_slice_us", "memory_slice_us")
WORDS = {"usage": ["usage"], "balance": ["ledger", "balance"], "findings": ["findings"]}
SEED = 20261130


def instant(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(timezone.utc)


def passes(doc):
    events = doc["events"]
    yield "in order", [events]
    if doc.get("order") == "fixed":
        return
    twice = [e for e in events for _ in range(2)]
    random.Random(SEED).shuffle(twice)
    third = -(-len(twice) // 3)
    yield "shuffled, twice", [twice[i:i + third] for i in range(0, len(twice), third)]
    yield "backwards", [[e] for e in reversed(events)]


def shell(command, env=None):
    done = subprocess.run(command, shell=True, env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip().splitlines()


def differs(expected, actual):
    """Whether a row is not what is expected, on the expected keys."""
    for key, value in expected.items():
        got = actual.get(key)
        if key.endswith("_seconds") and None not in (value, got):
            if Decimal(str(value)) != Decimal(str(got)):
                return True
        elif (None if value is None else str(value)) != (None if got is None else str(got)):
            return True
    return False


def is_zero(row):
    values = [row[q] for q in QUANTITIES if row.get(q) is not None]
    return bool(values) and all(Decimal(v) == 0 for v in values)


def is_named(word, text):
    return re.search(r"(?<![\w.-])" + re.escape(str(word)) + r"(?![\w.-])", text) is not None


def finding_differs(expected, actual):
    names = expected.get("names", [])
    times = [key for key in ("since", "until") if key in expected]
    return (any(expected[key] != actual[key] for key in times) or actual["kind"] != expected["kind"] or not is_named(expected["subject"], actual["subject"])
            or not all(is_named(name, json.dumps(actual)) for name in names))


def compare(check, answer):
    """What is missing and what is too much."""
    if check["command"] == "findings":
        rows = [f for f in answer["findings"] if f["kind"] in check["args"]["kinds"]]
        unlike = finding_differs
    else:
        rows, unlike = [r for r in answer["rows"] if not is_zero(r)], differs
    missing = []
    for expected in check["rows"]:
        found = next((i for i, row in enumerate(rows) if not unlike(expected, row)), None)
        if found is None:
            missing.append(expected)
        else:
            rows.pop(found)
    return [f"missing {json.dumps(m)}" for m in missing] + [f"unexpected {json.dumps(r)}" for r in rows]


class Product:
    """The binary on a database of its own."""

    def __init__(self, clock):
        self.env = {**os.environ, "DATABASE_URL": shell(os.environ["FRESH_DB"])[-1], "GPULEDGER_NOW": clock}

    def call(self, *words):
        done = subprocess.run([os.environ["GPULEDGER"], *words], env=self.env, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{' '.join(words[:2])}: exit {done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}")
        return done.stdout

    def ask(self, check):
        options = [w for k, v in check["args"].items() if k != "kinds" for w in ("--" + k.replace("_", "-"), v)]
        return json.loads(self.call(*WORDS[check["command"]], *options, "--format", "json"))

    def close(self):
        if os.environ.get("DROP_DB"):
            shell(os.environ["DROP_DB"], self.env)


def run_pass(doc, batches):
    times = [instant(doc["as_of"]), *(instant(e["time"]) for e in doc["events"])]
    product = Product((min(times) - timedelta(days=1)).isoformat())
    short = []
    try:
        with tempfile.TemporaryDirectory() as folder:
            product.call("migrate")
            if doc["config"]:
                Path(folder, "config.yaml").write_text("\n---\n".join(map(json.dumps, doc["config"])))
                product.call("apply", "-f", str(Path(folder, "config.yaml")))
            product.env["GPULEDGER_NOW"] = doc.get("now") or (max(times) + timedelta(days=1)).isoformat()
            for number, batch in enumerate(batches):
                path = Path(folder, f"{number}.ndjson")
                path.write_text("".join(json.dumps(e) + "\n" for e in batch))
                product.call("replay", str(path), "--as-of", doc["as_of"])
        for number, check in enumerate(doc["expect"], 1):
            short += [f"check {number} ({check['command']}): {fell}" for fell in compare(check, product.ask(check))]
        product.call("ledger", "verify")
    except RuntimeError as error:
        short.append(str(error))
    finally:
        product.close()
    return short


def run(path):
    doc = yaml.safe_load(path.read_text())
    return path, [f"{name}: {fell}" for name, batches in passes(doc) for fell in run_pass(doc, batches)]


def main():
    paths = [Path(a) for a in sys.argv[1:]] or sorted((HERE / "ledger").glob("[0-9]*.yaml"))
    held = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for path, short in pool.map(run, paths):
            held += not short
            if short:
                print(f"short {path.stem}", *short, sep="\n        ", flush=True)
    print(f"{held} held, {len(paths) - held} short")
    return 0 if paths and held == len(paths) else 1


if __name__ == "__main__":
    sys.exit(main())
