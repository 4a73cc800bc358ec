#!/usr/bin/env bash
# Runs the shared scenarios (../shared, or SHARED) against target/debug/gpuledger, each in databases of its own.
#
#   scenarios.sh ledger|billing [ARGUMENT OF THE RUNNER…]     e.g. --only 07
#
# Where there is no ../shared it says SKIPPED and exits 0: the files are not part of this repository.
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

SHARED=${SHARED:-$ROOT/../shared}
# Examples of the rules of billing that it has.
BILLING_NOW=" 01 06 16 26 "

chosen() {
    local file number
    for file in "$SHARED/scenarios/$1"/[0-9]*.yaml; do
        number=$(basename "$file" | cut -c1-2)
        case "$1" in
        billing) case "$BILLING_NOW" in *" $number "*) ;; *) continue ;; esac ;;
        esac
        echo "$file"
    done
}

main() {
    local kind=${1:-} runner python files=() file
    case "$kind" in
    ledger) runner=scenarios.py ;;
    billing) runner=billing_scenarios.py ;;
    *) die 2 "usage: scenarios.sh ledger|billing [ARGUMENT…]" ;;
    esac
    shift
    if [ ! -f "$SHARED/tools/$runner" ]; then
        echo "SKIPPED: the shared $kind scenarios: $SHARED is not there"
        return
    fi
    python=$("$HERE/python.sh")
    while IFS= read -r file; do files+=("$file"); done < <(chosen "$kind")
    export FRESH_DB="$HERE/postgres.sh fresh-db" DROP_DB="$HERE/postgres.sh drop-db"
    export GPULEDGER=${GPULEDGER:-$ROOT/target/debug/gpuledger}
    echo "shared $kind scenarios: ${#files[@]} files"
    "$python" "$SHARED/tools/$runner" --jobs "${JOBS:-2}" "$@" "${files[@]}"
}

main "$@"
