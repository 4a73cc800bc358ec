"""Looks at the archive from outside: what is written, read by DuckDB, replayed, killed, dropped.

    python tests/archive [CHECK …]     all, or some of: serve replay duckdb kill retention refusal

GPULEDGER names the program; a database each is made on the server of deploy/local/postgres.sh."""
import sys

from checks import ALL
from place import Failed


def main():
    if any(word not in ALL for word in sys.argv[1:]):
        print(__doc__)
        return 2
    failed = 0
    for name in sys.argv[1:] or ALL:
        try:
            print(f"archive {name}: {ALL[name]()}", flush=True)
        except Failed as why:
            failed += 1
            print(f"archive {name}: FAILED: {why}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
