#!/usr/bin/env python3
"""Breaks one rule at a time and looks whether the tests notice.

    run.py                 every mutant of *.toml, in a copy of the tree under target/mutants; a table; exit 0 when all were killed
    run.py A-7 I-1         those of these rules
    run.py cases           those of this suite; one alone by file and number: identity:3
    run.py --check         only whether the text of each mutant still stands exactly once, and every rule has a mutant

A mutant is killed by a test that fails. One that does not compile kills nothing: it is `broken`, and counts as short. The copy has a target
folder of its own, so that what is built for it stays for the next run."""
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SCRATCH = ROOT / "target/mutants"
TREE = SCRATCH / "tree"
RULES = [f"M-{n}" for n in range(2, 5)] + [f"I-{n}" for n in range(1, 7)] + [f"A-{n}" for n in range(2, 20)] + [f"R-{n}" for n in range(1, 6)] + ["L-3"]
LIMIT = 1800
CASES = ["-p", "gpuledger-cases", "--test", "it", "every_case"]


def words(mutant):
    """The words behind `cargo test` and the environment of the suite that must notice."""
    suite, test = mutant["suite"], mutant.get("test", "")
    return {
        "cases": (CASES, {}),
        "properties": (["-p", "gpuledger-tests", "--test", "it", "properties::"], {"SOAK_CASES": "300"}),
        "domain": (["-p", "gpuledger-domain", "--lib", test], {}),
        "storage": (["-p", "gpuledger-storage", "--test", "it", test], {}),
        "sealed": (["-p", "gpuledger-tests", "--test", "it", "sealed::"], {}),
        "api": (["-p", "gpuledger-api", "--lib", test], {}),
        "database": (["-p", "gpuledger", "--test", "cases"], {"CASE": mutant.get("cases", "")}),
    }[suite]


def read():
    mutants = []
    for path in sorted(HERE.glob("*.toml")):
        for number, mutant in enumerate(tomllib.loads(path.read_text())["mutant"], 1):
            mutants.append({**mutant, "name": f"{path.stem}:{number}"})
    return mutants


def wrong(mutants):
    """What is wrong with the list itself."""
    found = [f"{rule} has no mutant" for rule in RULES if not any(m["rule"] == rule for m in mutants)]
    for mutant in mutants:
        where = f"{mutant['name']} ({mutant['rule']})"
        path = ROOT / mutant["file"]
        count = path.read_text().count(mutant["find"]) if path.is_file() else None
        if count is None:
            found.append(f"{where}: no file {mutant['file']}")
        elif count != 1:
            found.append(f"{where}: its text stands {count} times in {mutant['file']}, expected once: {mutant['find'].strip()[:80]}")
        elif mutant["find"] == mutant["put"]:
            found.append(f"{where}: changes nothing")
    return found


def copy_tree():
    """The tracked and the new files, with their times, so that only what changed is built again."""
    TREE.mkdir(parents=True, exist_ok=True)
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True)
    names = {name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()}
    for path in [p for p in TREE.rglob("*") if p.is_file() or p.is_symlink()]:
        if str(path.relative_to(TREE)) not in names:
            path.unlink()
    for name in names:
        source, copy = ROOT / name, TREE / name
        if not copy.exists() or copy.read_bytes() != source.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)


def environment(more):
    url = subprocess.run([str(ROOT / "deploy/local/postgres.sh"), "start"], capture_output=True, text=True).stdout.strip().splitlines()
    # Without debug information: gigabytes less, and nobody steps through a mutant.
    env = {**os.environ, "CARGO_TARGET_DIR": str(SCRATCH / "build"), "CARGO_PROFILE_DEV_DEBUG": "0", **more}
    if url and not env.get("DATABASE_URL"):
        env["DATABASE_URL"] = url[-1]
    return env


def test(arguments, env):
    done = subprocess.run(["cargo", "test", "--locked", *arguments], cwd=TREE, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=LIMIT)
    return done.returncode, done.stdout


def look(mutant):
    """Applies one mutant in the copy, runs its suite, and takes it back. Returns the verdict."""
    arguments, more = words(mutant)
    path = TREE / mutant["file"]
    whole = path.read_text()
    path.write_text(whole.replace(mutant["find"], mutant["put"]))
    try:
        code, said = test(arguments, environment(more))
    except subprocess.TimeoutExpired:
        return "killed (by the clock)"
    finally:
        path.write_text(whole)
    if re.search(r"^error(\[E\d+\])?: ", said, re.M) and "test result:" not in said:
        print(said[-3000:])
        return "broken"
    if code == 0:
        return "survived"
    return "killed" if "test result: FAILED" in said else "broken"


def healthy(mutants):
    """Every suite passes in the copy as it is, and runs something: else a failure proves nothing."""
    suites = {}
    for mutant in mutants:
        arguments, more = words(mutant)
        suites[(tuple(arguments), tuple(more.items()))] = mutant
    for (arguments, more), mutant in suites.items():
        print(f"as it is: cargo test {' '.join(arguments)} {dict(more) or ''}", flush=True)
        code, said = test(list(arguments), environment(dict(more)))
        ran = sum(int(n) for n in re.findall(r"test result: ok\. (\d+) passed", said))
        if code or ran == 0 or "SKIPPED" in said:
            print(said[-4000:])
            return f"`cargo test {' '.join(arguments)}` {dict(more)} does not pass as it is"
    return None


def main(arguments):
    mutants = read()
    faults = wrong(mutants)
    if faults:
        print("\n".join(faults))
        return 1
    if "--check" in arguments:
        print(f"{len(mutants)} mutants of {len(RULES)} rules, each found once")
        return 0
    chosen = [m for m in mutants if not arguments or {m["rule"], m["suite"], m["name"]} & set(arguments)]
    copy_tree()
    sick = healthy(chosen)
    if sick:
        print(sick)
        return 1
    killed = 0
    for mutant in chosen:
        began = time.monotonic()
        verdict = look(mutant)
        killed += verdict.startswith("killed")
        print(f"{mutant['rule']:5} {verdict:9} {time.monotonic() - began:4.0f} s  {mutant['breaks']}", flush=True)
    print(f"{killed} of {len(chosen)} mutants killed, {len({m['rule'] for m in chosen})} rules")
    return 0 if chosen and killed == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
