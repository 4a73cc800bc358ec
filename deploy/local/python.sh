#!/usr/bin/env bash
# Makes .local/venv with what tests/python/requirements.txt names, once for each content of that file, and adds the judges of
# tests/python/judges.txt; prints the path of its interpreter as last line.
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

VENV=$STATE/venv
WANTED=$ROOT/tests/python/requirements.txt
JUDGES=$ROOT/tests/python/judges.txt

main() {
    local stamp
    lock venv
    stamp=$(cksum <"$WANTED")
    if [ "$(cat "$VENV/.stamp" 2>/dev/null)" != "$stamp" ]; then
        have python3 || die 3 "python3 is missing: run deploy/local/install.sh"
        say "making $VENV"
        rm -rf "$VENV"
        python3 -m venv "$VENV" >&2 || die 3 "python3 cannot make a virtual environment: run deploy/local/install.sh"
        "$VENV/bin/pip" install -q --disable-pip-version-check -r "$WANTED" >&2 </dev/null || die 3 "pip could not install $WANTED"
        echo "$stamp" >"$VENV/.stamp"
    fi
    stamp=$(cksum <"$JUDGES")
    if [ "$(cat "$VENV/.judges" 2>/dev/null)" != "$stamp" ]; then
        # They ask for a newer Python than Debian has and run without it.
        "$VENV/bin/pip" install -q --disable-pip-version-check --ignore-requires-python -r "$JUDGES" >&2 </dev/null ||
            die 3 "pip could not install $JUDGES"
        echo "$stamp" >"$VENV/.judges"
    fi
    echo "$VENV/bin/python"
}

main
