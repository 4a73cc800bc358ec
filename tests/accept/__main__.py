"""Looks at each bar of the issues and prints a table: bar, figure, held, short or skipped. A skip is not held.

    make accept                            all
    make accept BARS='openb phillips'      those whose names contain one of the words

Exit 0 only when every bar looked at was held."""
import sys

import archive  # noqa: F401 (registers its bars)
import audit  # noqa: F401 (registers its bars)
import azure  # noqa: F401 (registers its bars)
import billing  # noqa: F401 (registers its bars)
import chaos  # noqa: F401 (registers its bar)
import cases  # noqa: F401 (registers its bars)
import collector  # noqa: F401 (registers its bars)
import frame
import database  # noqa: F401 (registers its bars)
import growth  # noqa: F401 (registers its bars)
import ingest  # noqa: F401 (registers its bars)
import hostile  # noqa: F401 (registers its bars)
import machine  # noqa: F401
import measured  # noqa: F401 (registers its bars)
import pools  # noqa: F401 (registers its bars)
import parked  # noqa: F401 (registers its bars)
import product
import residue  # noqa: F401 (registers its bars)
import scale  # noqa: F401 (registers its bars)
import suites  # noqa: F401
import tlog  # noqa: F401 (registers its bars)
import traces  # noqa: F401


def main():
    if any(word.startswith("-") for word in sys.argv[1:]):
        print(__doc__)
        return 2
    try:
        product.run("cargo", "build", "--locked", "--workspace", "--all-targets")
    except frame.Short as e:
        print(f"accept: {e}", file=sys.stderr)
        return 1
    return 0 if frame.run(sys.argv[1:]) else 1


if __name__ == "__main__":
    sys.exit(main())
