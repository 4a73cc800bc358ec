#!/usr/bin/env bash
# Every test, on a fresh machine too: installs what is missing, starts Postgres and Kafka, runs the Rust tests, then the
# shared scenarios where they are. Each suite has a short budget here and a long one in `make soak`.
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

main() {
    cd "$ROOT"
    "$HERE/install.sh"
    "$HERE/postgres.sh" start >/dev/null
    "$HERE/kafka.sh" start >/dev/null
    "$HERE/python.sh" >/dev/null
    # All at once, so that the program and the tests agree on the features of what both build upon.
    cargo build --locked --workspace --all-targets
    cargo test --locked --workspace
    FRESH_DB="$HERE/postgres.sh fresh-db" DROP_DB="$HERE/postgres.sh drop-db" GPULEDGER=$ROOT/target/debug/gpuledger \
        "$("$HERE/python.sh")" tests/scenarios/run.py
    "$HERE/scenarios.sh" ledger
    "$HERE/scenarios.sh" billing
    "$("$HERE/python.sh")" tests/archive
    "$("$HERE/python.sh")" tests/audit --share
    "$("$HERE/python.sh")" tests/tlog
    "$("$HERE/python.sh")" tests/mutants/run.py --check
    "$("$HERE/python.sh")" tests/chaos --share
    "$("$HERE/python.sh")" tests/chaos/scale.py --share
    echo "all tests passed"
}

main
