# shellcheck shell=bash
# What the scripts of the local stack share: where things lie, messages, ports, locks, processes.

set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
ROOT=$(cd "$HERE/../.." && pwd -P)
# All state of this checkout; ignored by git, safe to remove when nothing runs.
STATE=$ROOT/.local
# Names of things outside the checkout (a container, a directory) carry the checkout's path, so that two never meet.
# shellcheck disable=SC2034 # read by the scripts that source this one
KEY=$(printf '%s' "$ROOT" | cksum | cut -d' ' -f1)

# Messages go to standard error: standard output carries the one line that callers read.
say() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2; }

# die CODE MESSAGE: 2 is wrong usage, 3 a dependency out of reach, as in the product.
die() {
    local code=$1
    shift
    say "$*"
    exit "$code"
}

have() { command -v "$1" >/dev/null 2>&1; }

# Runs once at a time in this checkout. The lock ends with the process; a daemon must close descriptor 9.
lock() {
    mkdir -p "$STATE"
    exec 9>"$STATE/$1.lock"
    if have flock; then
        flock -w 300 9 || die 3 "another $1 command has held $STATE/$1.lock for five minutes"
    fi
}

listening() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# A port nobody listens on, below the range that Linux hands to clients (32768 and up).
free_port() {
    local port try
    for try in $(seq 1 200); do
        port=$((20000 + (RANDOM * 32768 + RANDOM) % 10000))
        if ! listening "$port"; then
            echo "$port"
            return
        fi
    done
    die 3 "no free port between 20000 and 29999 in $try tries"
}

# remembered_port FILE: the port of last time if it is still free, else a new one, which is remembered.
remembered_port() {
    local port=""
    [ ! -s "$1" ] || port=$(cat "$1")
    if [ -z "$port" ] || listening "$port"; then
        port=$(free_port)
        echo "$port" >"$1"
    fi
    echo "$port"
}

# running PID TEXT: true when that process lives and its command line contains the text. A process id alone proves
# nothing: after a restart of the machine it may belong to somebody else.
running() {
    local args
    [ -n "$1" ] || return 1
    args=$(ps -ww -p "$1" -o args= 2>/dev/null) || return 1
    case "$args" in *"$2"*) return 0 ;; esac
    return 1
}

# ended PID TEXT SECONDS: waits until that process is gone.
ended() {
    local n
    for n in $(seq 1 $(($3 * 10))); do
        running "$1" "$2" || return 0
        sleep 0.1
    done
    say "process $1 is still there after $((n / 10)) s"
    return 1
}
