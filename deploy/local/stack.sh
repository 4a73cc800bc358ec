#!/usr/bin/env bash
# The full stack on this machine: Postgres, Kafka, and the product's services in the background.
#
#   stack.sh up      starts what does not run, brings the database `gpuledger` up to date, prints the addresses
#   stack.sh down    stops all of it; data stay
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

DIR=$STATE/stack
BIN=$ROOT/target/debug/gpuledger
# What tells our process from any other: the services are started by this name.
MARK="$DIR/gpuledger serve"
PATIENCE=60

services_pid() { cat "$DIR/pid" 2>/dev/null || true; }

services_run() { running "$(services_pid)" "$MARK"; }

# http_ok PORT PATH: true where a GET is answered by 200
http_ok() {
    local status
    { exec 3<>"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null || return 1
    printf 'GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n' "$2" >&3
    IFS= read -r -t 5 status <&3 || status=""
    exec 3>&-
    case "$status" in HTTP/1.?" 200"*) return 0 ;; esac
    return 1
}

wait_ready() {
    local n
    for n in $(seq 1 $((PATIENCE * 5))); do
        services_run || die 3 "the services ended: $(tail -n 3 "$DIR/log")"
        if http_ok "$(cat "$DIR/admin-port")" /readyz; then return; fi
        sleep 0.2
    done
    die 3 "the services are not ready after $((n / 5)) s: see $DIR/log"
}

# The development key that signs and verifies tokens: for this machine only.
make_key() {
    [ -s "$DIR/jwt-key.pem" ] || (umask 077 && openssl genpkey -algorithm ed25519 -out "$DIR/jwt-key.pem")
}

settings() {
    cat <<TOML
# Written by deploy/local/stack.sh for each start.
database_url = "$1"
kafka_bootstrap = "$2"
api_bind = "127.0.0.1:$3"
admin_bind = "127.0.0.1:$4"
jwt_key_file = "$DIR/jwt-key.pem"
archive_url = "$DIR/archive"
audit_key_file = "$DIR/audit.key"
audit_head_file = "$DIR/audit.head"
TOML
}

up() {
    local url bootstrap
    "$HERE/install.sh"
    (cd "$ROOT" && cargo build --locked -p gpuledger)
    bootstrap=$("$HERE/kafka.sh" start)
    url=$("$HERE/postgres.sh" db gpuledger)
    lock stack
    mkdir -p "$DIR"
    if ! services_run; then
        make_key
        (umask 077 && settings "$url" "$bootstrap" "$(remembered_port "$DIR/api-port")" \
            "$(remembered_port "$DIR/admin-port")" >"$DIR/gpuledger.toml")
        # A copy, so that the next build does not pull the program from under the services.
        cp -f "$BIN" "$DIR/gpuledger"
        export GPULEDGER_CONFIG=$DIR/gpuledger.toml
        "$DIR/gpuledger" migrate >&2
        nohup "$DIR/gpuledger" serve >"$DIR/log" 2>&1 </dev/null 9>&- &
        echo $! >"$DIR/pid"
    fi
    wait_ready
    addresses "$url" "$bootstrap"
}

addresses() {
    cat <<TEXT
api       http://127.0.0.1:$(cat "$DIR/api-port")    (readable description at /docs)
metrics   http://127.0.0.1:$(cat "$DIR/admin-port")/metrics
kafka     $2
postgres  $1
log       $DIR/log
settings  export GPULEDGER_CONFIG=$DIR/gpuledger.toml    then: $DIR/gpuledger usage …
TEXT
}

down() {
    local pid
    lock stack
    pid=$(services_pid)
    if running "$pid" "$MARK"; then
        kill -s TERM "$pid"
        if ! ended "$pid" "$MARK" 30; then
            kill -s KILL "$pid"
            ended "$pid" "$MARK" 10
        fi
        say "services stopped"
    fi
    rm -f "$DIR/pid"
    [ -n "${KAFKA_BOOTSTRAP:-}" ] || "$HERE/kafka.sh" stop
    [ -n "${DATABASE_URL:-}" ] || "$HERE/postgres.sh" stop
}

case "${1:-}" in
up) up ;;
down) down ;;
*) die 2 "usage: stack.sh up|down" ;;
esac
