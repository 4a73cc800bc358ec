"""Bars that a runner or a suite of tests looks at; the figure is the line it ends with."""
import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from frame import Short, Skipped, bar
from product import LOCAL, LONG, ROOT, last_line, run, shared


def scenarios(kind):
    shared("scenarios", kind)
    done = run(LOCAL / "scenarios.sh", kind, check=False)
    figure = last_line(done.stdout)
    if done.returncode:
        print(done.stdout, done.stderr)
        raise Short(figure or last_line(done.stderr))
    return figure


@bar("scenarios-ledger", "every ledger example but residue: in order, shuffled and doubled, backwards")
def scenarios_ledger():
    return scenarios("ledger")


@bar("scenarios-billing", "billing examples 01, 06, 16, 26")
def scenarios_billing():
    return scenarios("billing")


@bar("examples-own", "our own worked examples of the rules: in order, shuffled and doubled, backwards")
def examples_own():
    return examples()


def examples(*files):
    """Our worked examples, or these of them."""
    env = {**os.environ, "FRESH_DB": f"{LOCAL}/postgres.sh fresh-db", "DROP_DB": f"{LOCAL}/postgres.sh drop-db",
           "GPULEDGER": str(ROOT / "target/debug/gpuledger")}
    done = subprocess.run([sys.executable, str(ROOT / "tests/scenarios/run.py"), *map(str, files)], env=env, cwd=ROOT, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=4 * LONG)
    if done.returncode:
        print(done.stdout)
        raise Short(last_line(done.stdout))
    return last_line(done.stdout)


@functools.cache
def built():
    """Test programs by package: of each its name (of a library's own tests `lib`), its path, and the folder that it runs in. All are built at once:
    the libraries of one package alone have other features, and would be built again for each."""
    packages = json.loads(run("cargo", "metadata", "--locked", "--no-deps", "--format-version", "1").stdout)["packages"]
    names = {package["manifest_path"]: package["name"] for package in packages}
    said = run("cargo", "test", "--locked", "--workspace", "--no-run", "--message-format=json", timeout=4 * LONG).stdout
    programs = {}
    for made in map(json.loads, said.splitlines()):
        if made.get("executable") and made["profile"]["test"]:
            name = "lib" if "lib" in made["target"]["kind"] else made["target"]["name"]
            programs.setdefault(names[made["manifest_path"]], []).append((name, made["executable"], Path(made["manifest_path"]).parent))
    return programs


def suite(package, test="", *, target=None, env=None, figure=r"test result: (.*)"):
    """Tests of a package whose names contain `test`, of its library (`lib`), of one test program, or of all: they must pass, and at least one
    must have run. Returns the lines that carry their figures."""
    said = "".join(passed([program, test], folder, env) for name, program, folder in built()[package] if target in (None, name))
    return figures_of(said, f"{package} {target or ''} {test}", figure)


def cargo(*words, env=None, figure=r"test result: (.*)"):
    """As `suite`, by words of cargo's own: for what is built with features of its own."""
    return figures_of(passed(["cargo", "test", "--locked", *words, "--"], ROOT, env), " ".join(words), figure)


def passed(words, folder, env):
    """What a test program said that must pass."""
    done = subprocess.run([*words, "--nocapture"], env={**os.environ, **(env or {})}, cwd=folder, stdin=subprocess.DEVNULL, timeout=4 * LONG,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        print(done.stdout[-6000:])
        raise Short(f"`{' '.join(words)}` exit {done.returncode}")
    return done.stdout


def figures_of(said, name, figure):
    """The lines of a suite that carry its figures; Skipped where no test ran."""
    if sum(map(int, re.findall(r"test result: ok\. (\d+) passed", said))) == 0:
        raise Skipped(f"no test of that name: {name}")
    print(said[-4000:])
    return "; ".join(line for line in re.findall(figure, said) if not line.startswith("ok. 0 passed"))


@bar("properties", "10,000 random fleets keep the laws; each harder rule in at least 10 % of them")
def properties():
    # The suite itself fails where a rule is reached too seldom.
    return suite("gpuledger-tests", "properties", env={"SOAK_CASES": "10000"}, figure=r"\d+ random cases: .*")
