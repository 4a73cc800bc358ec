"""Bars, their checks, and the table."""
import time
import traceback

HELD, SHORT, SKIPPED = "held", "short", "skipped"


class Short(Exception):
    """The product does not meet the bar; the text is the figure or what went wrong."""


class Skipped(Exception):
    """The bar cannot be looked at here; the text says why. A skip is not held."""


class Bar:
    """One bar: its name, what is asked, and the check, which returns the figure it saw."""

    def __init__(self, name, asked, check):
        self.name, self.asked, self.check = name, asked, check


BARS = []


def bar(name, asked):
    """Registers a check under the name of its bar. It returns the figure, or raises Short or Skipped."""
    def register(check):
        BARS.append(Bar(name, asked, check))
        return check
    return register


def look(one):
    """Runs one check; returns (figure, verdict)."""
    try:
        return one.check(), HELD
    except Short as e:
        return str(e), SHORT
    except Skipped as e:
        return str(e), SKIPPED
    except Exception as e:  # a check that breaks is a bar not met, and the others are still looked at
        traceback.print_exc()
        return f"the check broke: {e}", SHORT


def run(names):
    """Runs the bars whose names contain one of the words (all without a word); prints the table. True when all held."""
    chosen = [b for b in BARS if not names or any(n in b.name for n in names)]
    rows = []
    for one in chosen:
        began = time.monotonic()
        print(f"accept: {one.name}: {one.asked}", flush=True)
        figure, verdict = look(one)
        print(f"accept: {one.name}: {verdict} ({time.monotonic() - began:.0f} s)", flush=True)
        rows.append((one.name, " ".join(figure.split())[:160], verdict))
    print_table([("bar", "figure", "verdict"), *rows])
    held = sum(verdict == HELD for *_, verdict in rows)
    print(f"{held} of {len(rows)} bars held")
    return bool(rows) and held == len(rows)


def print_table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    for n, row in enumerate(rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
        if n == 0:
            print("  ".join("-" * width for width in widths))
