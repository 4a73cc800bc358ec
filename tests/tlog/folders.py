"""Exported folders, whole and spoilt, before aics-tlog: one process, many folders."""
import base64
import json
import os
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

from aics_tlog import (FileSystemTileReader, VerifiedTileReader, audit_tiles, consistency_proof_from_tiles, parse_checkpoint, parse_note, parse_vkey,
                       verify_checkpoint, verify_consistency, verify_leaf_inclusion)

ROOT = Path(__file__).resolve().parents[2]
UNTOUCHED = "Untouched"
# Folders that lie on the disk at once.
AT_ONCE = 500


class Wrong(Exception):
    """The judge and we do not agree."""


class Refused(Exception):
    """The judge refuses a log."""


def opened(note, key):
    """The checkpoint of a note that the key signed."""
    parsed = parse_note(note)
    verdict = verify_checkpoint(parsed, key, expected_origin=key.name)
    if not verdict.ok:
        raise Refused(verdict.error)
    return parse_checkpoint(parsed.text)


def look(folder, key, last_note):
    """What an auditor with the pinned key and the last checkpoint does."""
    head, last = opened((folder / "checkpoint").read_bytes(), key), opened(last_note, key)
    reader = FileSystemTileReader(folder)
    if last.size > head.size:
        raise Refused("the log shrank")
    if last.size == head.size and last.root != head.root:
        raise Refused("two roots of one size")
    if last.size < head.size:
        proof = consistency_proof_from_tiles(VerifiedTileReader(reader, head.size, head.root), last.size, head.size)
        if not verify_consistency(last.size, head.size, last.root, head.root, proof):
            raise Refused("it does not extend the last checkpoint")
    audit_tiles(reader, head.size, head.root)
    return head


def refusal(folder, case):
    """None where the judge accepts, else what it says."""
    try:
        look(folder, parse_vkey(case["key"]), case["last"])
        return None
    except (Refused, ValueError, OSError) as e:  # of aics_tlog: TileVerificationError is a ValueError, TileMissingError a FileNotFoundError
        return str(e)


def spoilt(proof):
    """Wrong proofs: one hash less, one more, and one with a bit turned."""
    yield [*proof, bytes(32)]
    if proof:
        yield proof[:-1]
        yield [bytes([proof[0][0] ^ 1]) + proof[0][1:], *proof[1:]]


def proofs(folder, case):
    """The proofs that our code made of an untouched log, and what is wrong about each; how many were looked at."""
    key, witness = parse_vkey(case["key"]), parse_vkey(case["witness"])
    head, last = opened((folder / "checkpoint").read_bytes(), key), opened(case["last"], key)
    path, consistency = ([base64.b64decode(text) for text in case[name]] for name in ("path", "consistency"))
    entry = base64.b64decode(case["entry"])
    if not verify_leaf_inclusion(entry, case["index"], head.size, path, head.root):
        raise Wrong(f"{folder}: our proof of leaf {case['index']} is refused")
    if not verify_consistency(last.size, head.size, last.root, head.root, consistency):
        raise Wrong(f"{folder}: our proof from {last.size} to {head.size} is refused")
    tried = [verify_leaf_inclusion(entry + b"!", case["index"], head.size, path, head.root)]
    tried += [verify_leaf_inclusion(entry, case["index"], head.size, other, head.root) for other in spoilt(path)]
    tried += [verify_consistency(last.size, head.size, last.root, head.root, other) for other in spoilt(consistency)]
    note = parse_note(case["cosigned"])
    if not verify_checkpoint(note, key, [witness], 1).ok:
        raise Wrong(f"{folder}: our cosignature is refused")
    tried.append(verify_checkpoint(parse_note((folder / "checkpoint").read_bytes()), key, [witness], 1).ok)
    if any(tried):
        raise Wrong(f"{folder}: a wrong proof is accepted")
    return len(tried) + 3


def made(folder, first, cases):
    """Our test writes the folders; it fails where our verifier or Go's lineage misses one."""
    words = ["cargo", "test", "--locked", "-p", "gpuledger-tlog", "--test", "it", "every_mutation", "--", "--nocapture"]
    env = {**os.environ, "SOAK_CASES": str(cases), "SOAK_SEED": str(first), "TLOG_CASES": str(folder)}
    done = subprocess.run(words, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Wrong(done.stdout[-2000:])
    return [json.loads(line) for line in (folder / "cases.ndjson").read_text().splitlines()]


def judge(cases):
    met, looked = Counter(), 0
    for first in range(0, cases, AT_ONCE):
        with tempfile.TemporaryDirectory(prefix="gpuledger-tlog-") as place:
            for case in made(Path(place), first, min(AT_ONCE, cases - first)):
                folder = Path(place) / case["folder"]
                said = refusal(folder, case)
                if (said is None) != (case["kind"] == UNTOUCHED):
                    raise Wrong(f"seed {case['folder']}: {case['kind']}: {said or 'accepted'}")
                met[case["kind"]] += 1
                if said is None:
                    looked += proofs(folder, case)
    spread = " ".join(f"{kind}={count}" for kind, count in sorted(met.items()))
    if sum(met.values()) != cases or not looked:
        raise Wrong(f"{sum(met.values())} of {cases} folders, {looked} proofs")
    print(f"RESULT judge-tlog folders={cases} tampered={cases - met[UNTOUCHED]} refused={cases - met[UNTOUCHED]} proofs={looked} {spread}", flush=True)
