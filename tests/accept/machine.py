"""Bars of the two commands a newcomer types: on this machine, and on a fresh one."""
import os
import shutil
import time

from frame import Short, Skipped, bar
from product import LOCAL, LONG, run


def twice(*words):
    """The seconds of the first and the second time."""
    took = []
    for _ in range(2):
        began = time.monotonic()
        run(*words, timeout=4 * LONG)
        took.append(time.monotonic() - began)
    return took


@bar("demo", "`make demo` works, and again the second time")
def demo():
    first, second = twice("make", "demo")
    return f"{first:.0f} s, then {second:.0f} s"


def on_fresh_machine(target):
    """Each as the only command on a bare Debian 12, then once more on what that left."""
    if os.environ.get("FRESH") != "1":
        raise Skipped("takes an hour and a chroot: FRESH=1 looks at it")
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        raise Skipped("needs root and debootstrap")
    took = []
    for again in ([], ["again"]):
        began = time.monotonic()
        done = run(LOCAL / "fresh.sh", *again, "make", target, timeout=4 * LONG, check=False)
        if done.returncode:
            raise Short(f"make {target} exit {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")
        took.append(time.monotonic() - began)
    return f"{took[0]:.0f} s, then {took[1]:.0f} s"


@bar("fresh-demo", "on a fresh Debian 12 with Rust, `make demo` as the only command, twice")
def fresh_demo():
    return on_fresh_machine("demo")


@bar("fresh-test", "on a fresh Debian 12 with Rust, `make test` as the only command, twice")
def fresh_test():
    return on_fresh_machine("test")
