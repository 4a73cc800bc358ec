#!/usr/bin/env bash
# A private PostgreSQL for this checkout, from installed binaries (version 15 or newer).
#
#   postgres.sh start       starts it where it does not run; prints the URL of its database `postgres` as last line
#   postgres.sh stop        stops it; data stay
#   postgres.sh url         prints the URL; fails where it does not run
#   postgres.sh fresh-db    makes an empty database of a name of its own; prints its URL as last line
#   postgres.sh db NAME     the same for a database of that name, which is kept and made only where it is not there
#   postgres.sh psql        prints the path of psql
#   postgres.sh drop-db     drops the database of DATABASE_URL, if fresh-db made it
#
# DATABASE_URL, where set, is used instead of a private server: nothing is then started or stopped, and the role needs
# CREATEDB for fresh-db. FAST=1 starts it without fsync, for tests only: benchmarks refuse such a server.
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

OLDEST=15
PREFIX=gpuledger_fresh_

# ---- where things are ---------------------------------------------------------------------------------------------

major() { "$1/postgres" --version | sed -E 's/[^0-9]*([0-9]+).*/\1/'; }

# The directories that hold a server, newest version first.
bin_dirs() {
    local dir
    {
        for dir in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql@*/bin; do
            [ ! -x "$dir/initdb" ] || echo "$(major "$dir") $dir"
        done
        if have pg_config && dir=$(pg_config --bindir) && [ -x "$dir/initdb" ]; then
            echo "$(major "$dir") $dir"
        fi
    } | sort -rnu | cut -d' ' -f2
}

# The newest version, or the one that made the data.
find_bin() {
    local dir found="" version=""
    [ ! -s "$HOME_DIR/version" ] || version=$(cat "$HOME_DIR/version")
    for dir in $(bin_dirs); do
        [ "$(major "$dir")" -ge "$OLDEST" ] || continue
        found=yes
        if [ -z "$version" ] || [ "$version" = "$(major "$dir")" ]; then
            echo "$dir"
            return
        fi
    done
    [ -z "$found" ] || die 3 "$HOME_DIR was made by PostgreSQL $version, which is gone: install it, or remove that directory"
    die 3 "no PostgreSQL $OLDEST or newer is installed: run deploy/local/install.sh, or set DATABASE_URL"
}

# PostgreSQL refuses to run as root, so root starts it as another user.
find_user() {
    local name
    if [ "$(id -u)" != 0 ]; then
        id -un
        return
    fi
    have runuser || die 3 "as root this needs runuser (package util-linux); or run it as another user"
    for name in postgres nobody; do
        if id -u "$name" >/dev/null 2>&1; then
            echo "$name"
            return
        fi
    done
    die 3 "PostgreSQL refuses to run as root, and there is no user postgres or nobody to run it as"
}

as_user() {
    if [ "$(id -un)" = "$PGUSER_OS" ]; then "$@"; else (cd / && runuser -u "$PGUSER_OS" -- "$@"); fi
}

# Under .local; where the server's user cannot reach that (a checkout in root's home), under /var/tmp.
find_home() {
    local dir=$STATE/postgres
    mkdir -p "$dir"
    if ! as_user test -x "$dir"; then
        dir=/var/tmp/gpuledger-$KEY
        mkdir -p "$dir"
        # Anyone may make names in /var/tmp: only a directory of our own will do.
        { [ -O "$dir" ] && [ ! -L "$dir" ]; } || die 3 "$dir belongs to somebody else: remove it"
        chmod 0711 "$dir"
        dir=$dir/postgres
        mkdir -p "$dir"
    fi
    chmod 0711 "$dir"
    echo "$dir"
}

# ---- the server ---------------------------------------------------------------------------------------------------

url_of() { echo "postgres://postgres:$(cat "$HOME_DIR/password")@127.0.0.1:$(cat "$HOME_DIR/port")/$1"; }

server_pid() { as_user sed -n 1p "$DATA/postmaster.pid" 2>/dev/null || true; }

is_running() { running "$(server_pid)" "$DATA"; }

answers() { psql_at "$1" 'select 1' >/dev/null 2>&1; }

psql_at() { PGCONNECT_TIMEOUT=10 "$PSQL" -X -q -A -t -v ON_ERROR_STOP=1 -d "$1" -c "$2" </dev/null; }

make_cluster() {
    local log
    say "making a cluster in $DATA (PostgreSQL $(major "$BIN"), as user $PGUSER_OS)"
    (umask 077 && od -An -N16 -tx1 /dev/urandom | tr -d ' \n' >"$HOME_DIR/password")
    mkdir -p "$RUN"
    rm -rf "$DATA.new"
    mkdir -m 0700 "$DATA.new"
    [ "$(id -u)" != 0 ] || chown "$PGUSER_OS" "$DATA.new" "$RUN"
    # The password is asked for in clear: it never leaves the loopback, and a SCRAM handshake in a debug build of a
    # client takes a tenth of a second for every connection.
    as_user sh -c "umask 077 && cat >'$RUN/secret'" <"$HOME_DIR/password"
    log=$(as_user "$BIN/initdb" --pgdata="$DATA.new" --username=postgres --encoding=UTF8 --locale=C \
        --auth=password --pwfile="$RUN/secret" 2>&1) || die 3 "initdb failed: $log"
    rm -f "$RUN/secret"
    as_user tee -a "$DATA.new/postgresql.conf" >/dev/null <<CONF
listen_addresses = '127.0.0.1'
max_connections = 200
timezone = 'UTC'
log_timezone = 'UTC'
CONF
    major "$BIN" >"$HOME_DIR/version"
    mv "$DATA.new" "$DATA"
}

launch() {
    local port options
    port=$(remembered_port "$HOME_DIR/port")
    options="-p $port"
    # A socket's path has room for about a hundred bytes; where the checkout lies too deep, TCP alone must do.
    if [ ${#RUN} -le 85 ]; then options="$options -k '$RUN'"; else options="$options -k ''"; fi
    if [ "${FAST:-0}" = 1 ]; then
        say "FAST=1: fsync, synchronous_commit and full_page_writes are off; for tests only"
        options="$options -c fsync=off -c synchronous_commit=off -c full_page_writes=off"
    fi
    as_user "$BIN/pg_ctl" start -s -w -t 60 -D "$DATA" -l "$RUN/log" -o "$options" >/dev/null 9>&-
}

start() {
    local try
    if [ ! -d "$DATA" ]; then make_cluster; fi
    for try in 1 2 3 4 5 last; do
        if is_running && answers "$(url_of postgres)"; then return; fi
        [ "$try" != last ] || break
        if launch; then continue; fi
        # Somebody may have taken the port since we looked: another one, then.
        say "it did not start (try $try): $(as_user tail -n 2 "$RUN/log" 2>/dev/null | tr '\n' ' ')"
        rm -f "$HOME_DIR/port"
    done
    die 3 "PostgreSQL does not start: see $RUN/log"
}

stop() {
    local pid
    pid=$(server_pid)
    if running "$pid" "$DATA"; then
        as_user "$BIN/pg_ctl" stop -s -w -t 60 -m fast -D "$DATA"
        say "stopped"
    else
        say "does not run"
    fi
}

# ---- databases ----------------------------------------------------------------------------------------------------

# with_database URL NAME: the same server, another database.
with_database() {
    local base=${1%%\?*} query=""
    [ "$base" = "$1" ] || query="?${1#*\?}"
    case "$base" in
    postgres://*/* | postgresql://*/*) ;;
    postgres://* | postgresql://*) base="$base/" ;;
    *) die 2 "DATABASE_URL must look like postgres://user:password@host:port/database" ;;
    esac
    echo "${base%/*}/$2$query"
}

fresh_db() {
    local name
    # Time, process and chance: unique among checkouts that share a server.
    name=$PREFIX$(date +%s)_$$_$RANDOM
    psql_at "$1" "create database $name template template0 encoding 'UTF8'" >&2 || die 3 "cannot make a database on the server"
    with_database "$1" "$name"
}

named_db() {
    local there
    case "$2" in "" | *[!a-z0-9_]*) die 2 "a database's name here is of a to z, 0 to 9 and _" ;; esac
    there=$(psql_at "$1" "select 1 from pg_database where datname = '$2'") || die 3 "the server does not answer"
    [ -n "$there" ] || psql_at "$1" "create database $2 template template0 encoding 'UTF8'" >&2
    with_database "$1" "$2"
}

drop_db() {
    local path=${DATABASE_URL:?drop-db needs the URL of the database in DATABASE_URL} name
    path=${path%%\?*}
    name=${path##*/}
    case "$name" in
    "$PREFIX"*) ;;
    *) die 2 "will not drop '$name': only databases that fresh-db made, whose names begin with $PREFIX" ;;
    esac
    psql_at "$(with_database "$DATABASE_URL" postgres)" "drop database if exists \"$name\" with (force)"
}

# ---- commands -----------------------------------------------------------------------------------------------------

find_psql() {
    local dir
    for dir in $(bin_dirs); do
        if [ -x "$dir/psql" ]; then
            echo "$dir/psql"
            return
        fi
    done
    command -v psql || die 3 "psql is missing: run deploy/local/install.sh"
}

private_server() {
    lock postgres
    PGUSER_OS=$(find_user)
    HOME_DIR=$(find_home)
    DATA=$HOME_DIR/data
    RUN=$HOME_DIR/run
    BIN=$(find_bin)
}

main() {
    case "${1:-}" in
    start | stop | url | psql | fresh-db | db | drop-db) ;;
    *) die 2 "usage: postgres.sh start|stop|url|psql|fresh-db|db NAME|drop-db" ;;
    esac
    PSQL=$(find_psql)
    case "$1" in
    psql)
        echo "$PSQL"
        return
        ;;
    drop-db)
        drop_db
        return
        ;;
    esac
    if [ -n "${DATABASE_URL:-}" ]; then
        [ "$1" != stop ] || { say "DATABASE_URL is set: that server is not ours to stop" && return; }
        answers "$DATABASE_URL" || die 3 "the server of DATABASE_URL does not answer"
        case "$1" in
        fresh-db) fresh_db "$DATABASE_URL" ;;
        db) named_db "$DATABASE_URL" "${2:-}" ;;
        *) echo "$DATABASE_URL" ;;
        esac
        return
    fi
    private_server
    case "$1" in
    start)
        start
        url_of postgres
        ;;
    stop) stop ;;
    url) if is_running; then url_of postgres; else die 3 "does not run: deploy/local/postgres.sh start"; fi ;;
    fresh-db)
        start
        exec 9>&-
        fresh_db "$(url_of postgres)"
        ;;
    db)
        start
        named_db "$(url_of postgres)" "${2:-}"
        ;;
    esac
}

main "$@"
