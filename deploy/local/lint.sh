#!/usr/bin/env bash
# All that is checked without running the product: format, clippy, what may come into the build, unused dependencies,
# migrations on an empty database, schemas, links, shell. Goes through all of them and names those that failed.
#
#   lint.sh [CHECK]    one of them: format, clippy, deny, unused, migrations, schemas, links, shell
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

CHECKS="format clippy deny unused migrations schemas links shell"
# Their versions are fixed, so that a new release of a tool does not fail an old commit.
DENY=0.20.2
MACHETE=0.9.2

# tool NAME VERSION: builds it into .local/bin, once; unoptimised, which is a third of the time and fast enough.
tool() {
    local have=""
    [ ! -x "$STATE/bin/$1" ] || have=$("$STATE/bin/$1" --version 2>/dev/null | sed -E 's/.* //')
    if [ "$have" != "$2" ]; then
        say "building $1 $2 (once, some minutes)"
        CARGO_PROFILE_DEV_DEBUG=0 cargo install -q --locked --debug --root "$STATE" --version "$2" "$1" </dev/null
    fi
}

check_format() { cargo fmt --all -- --check; }
check_clippy() { cargo clippy -q --locked --workspace --all-targets -- -D warnings; }

check_deny() {
    tool cargo-deny $DENY
    "$STATE/bin/cargo-deny" --log-level error --locked check bans licenses sources
}

check_unused() {
    tool cargo-machete $MACHETE
    "$STATE/bin/cargo-machete" "$ROOT"
}

# In the order of their names, each in a transaction of its own; then once more by another database of the same server,
# whose roles are there already.
check_migrations() {
    local psql url file round
    psql=$("$HERE/postgres.sh" psql)
    for round in first second; do
        url=$("$HERE/postgres.sh" fresh-db)
        for file in "$ROOT"/migrations/*.sql; do
            if ! "$psql" -X -q -1 -v ON_ERROR_STOP=1 -d "$url" -f "$file" >/dev/null </dev/null; then
                DATABASE_URL=$url "$HERE/postgres.sh" drop-db
                say "$file, in the $round database"
                return 1
            fi
        done
        DATABASE_URL=$url "$HERE/postgres.sh" drop-db
    done
}

check_schemas() { cargo test -q --locked -p gpuledger-wire schema; }
check_links() { python3 "$HERE/links.py"; }

check_shell() {
    local file
    for file in "$HERE"/*.sh "$ROOT/.ci/run"; do bash -n "$file" || return 1; done
    if have shellcheck; then
        (cd "$HERE" && shellcheck -x ./*.sh ../../.ci/run)
    else
        say "shellcheck is not installed: the shell scripts were parsed only"
    fi
}

main() {
    local check failed=""
    cd "$ROOT"
    if [ $# -gt 0 ]; then
        "check_$1"
        return
    fi
    "$HERE/install.sh"
    # Not part of every installation of Rust.
    if ! cargo fmt --version >/dev/null 2>&1 || ! cargo clippy --version >/dev/null 2>&1; then
        rustup component add rustfmt clippy >&2 || die 3 "rustfmt and clippy are needed: rustup component add rustfmt clippy"
    fi
    for check in $CHECKS; do
        echo "lint: $check"
        # A process of its own: `set -e` does not hold inside a condition.
        "$HERE/lint.sh" "$check" || failed="$failed $check"
    done
    [ -z "$failed" ] || die 1 "failed:$failed"
    echo "lint: all clean"
}

main "$@"
