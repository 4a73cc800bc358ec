"""Outside judges of the audit log: aics-tlog verifies what our code wrote and refuses what was done to it, aics-witness cosigns our log over HTTP.

    python tests/tlog                    500 folders, proofs, the witness
    python tests/tlog folders --cases N  folders alone, N of them
    python tests/tlog witness            the witness alone

The folders are made, and judged by our verifier and by one of Go's lineage, in `cargo test -p gpuledger-tlog mutations`."""
import argparse
import sys

import folders
import witness


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["folders", "witness"])
    parser.add_argument("--cases", type=int, default=500)
    words = parser.parse_args()
    wrong = set(words.parts) - {"folders", "witness"}
    if wrong:
        parser.error(f"no part is called {' '.join(sorted(wrong))}")
    try:
        if "folders" in words.parts:
            folders.judge(words.cases)
        if "witness" in words.parts:
            witness.judge()
    except (folders.Wrong, witness.Wrong) as e:
        print(f"judge-tlog: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
