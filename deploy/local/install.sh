#!/usr/bin/env bash
# Installs what building and testing needs and this machine lacks (Debian, Ubuntu); elsewhere names it. Rust is a
# prerequisite: see the message. Does nothing, in a fraction of a second, where all is there.
#
#   install.sh           installs what is missing; asks sudo where you are not root
#   install.sh --check   only says what is missing; exit 3 where something is
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

OLDEST_POSTGRES=15
OLDEST_JAVA=17

# ---- what is there ------------------------------------------------------------------------------------------------

# version_at_least HAVE WANT, by dotted numbers
version_at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

check_rust() {
    local want found
    want=$(sed -nE 's/^rust-version = "([0-9.]+)"/\1/p' "$ROOT/Cargo.toml")
    have cargo || die 3 "Rust $want or newer is needed and not installed: see https://rustup.rs"
    found=$(cargo --version | sed -E 's/^cargo ([0-9.]+).*/\1/')
    version_at_least "$found" "$want" || die 3 "Rust $want or newer is needed, this is $found: rustup update stable"
}

has_compiler() { have cc && have c++ && have make; }
has_library() { have pkg-config && pkg-config --exists "$1"; }
has_python() { have python3 && python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; }
has_certificates() { [ -s /etc/ssl/certs/ca-certificates.crt ] || [ -s /etc/pki/tls/certs/ca-bundle.crt ] || [ "$(uname)" = Darwin ]; }

has_postgres() {
    local postgres
    [ -z "${DATABASE_URL:-}" ] || { have psql && return; }
    for postgres in /usr/lib/postgresql/*/bin/initdb /usr/pgsql-*/bin/initdb /opt/homebrew/opt/postgresql@*/bin/initdb \
        "$(pg_config --bindir 2>/dev/null)/initdb"; do
        [ ! -x "$postgres" ] || [ "$("$postgres" --version | sed -E 's/[^0-9]*([0-9]+).*/\1/')" -lt "$OLDEST_POSTGRES" ] || return 0
    done
    return 1
}

has_java() {
    local major
    [ -z "${KAFKA_BOOTSTRAP:-}" ] || return 0
    have java || return 1
    major=$(java -version 2>&1 | sed -nE '1s/.*version "([0-9]+).*/\1/p')
    [ "${major:-0}" -ge "$OLDEST_JAVA" ]
}

has_maven() { [ -n "${KAFKA_BOOTSTRAP:-}" ] || have mvn; }

# need TEST PACKAGE… WHAT FOR: collects what is missing
MISSING=()
PACKAGES=()
need() {
    local test=$1 why=${*: -1}
    shift
    if ! $test; then
        MISSING+=("$why")
        PACKAGES+=("${@:1:$#-1}")
    fi
}

look() {
    need has_certificates ca-certificates "certificates of the public authorities, to fetch crates and jars"
    need has_compiler build-essential "C and C++ compilers and make, for librdkafka and aws-lc"
    need "has_library openssl" libssl-dev pkg-config "OpenSSL's headers and pkg-config, for librdkafka"
    need "has_library zlib" zlib1g-dev pkg-config "zlib's headers, for librdkafka"
    need "have perl" perl "perl, for the build of librdkafka"
    need "have ps" procps "ps, to end only what this checkout started"
    need has_postgres postgresql "PostgreSQL $OLDEST_POSTGRES or newer: server and psql"
    need has_java "$(java_package)" "Java $OLDEST_JAVA or newer, which Kafka runs on"
    need has_maven maven "Maven, which fetches Kafka's jars"
    need has_python python3 python3-venv "Python 3.10 or newer with venv, for the judges among the tests"
}

# ---- installing ---------------------------------------------------------------------------------------------------

candidate() { apt-cache policy "$1" 2>/dev/null | sed -nE 's/^ *Candidate: (.*)/\1/p' | grep -v '(none)'; }

java_package() {
    if have apt-cache && [ -n "$(candidate "openjdk-$OLDEST_JAVA-jre-headless")" ]; then
        echo "openjdk-$OLDEST_JAVA-jre-headless"
    else
        echo default-jre-headless
    fi
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        have sudo || die 3 "this needs root: run as root  apt-get install ${PACKAGES[*]}"
        sudo "$@"
    fi
}

# Debian's package makes and starts a cluster on port 5432, which nobody asked for here: ours are private.
CLUSTER_CONF=/etc/postgresql-common/createcluster.d/gpuledger.conf

apt_install() {
    local newest
    say "installing by apt-get: ${PACKAGES[*]}"
    as_root apt-get update -q >&2
    case " ${PACKAGES[*]} " in
    *" postgresql "*)
        # The version stands before the plus sign of the package's own.
        newest=$(candidate postgresql | sed -E 's/^[^0-9]*([0-9]+).*/\1/')
        [ "${newest:-0}" -ge "$OLDEST_POSTGRES" ] ||
            die 3 "this release has PostgreSQL ${newest:-none}; $OLDEST_POSTGRES or newer: see https://www.postgresql.org/download/linux/"
        as_root mkdir -p "$(dirname "$CLUSTER_CONF")"
        echo "create_main_cluster = false" | as_root tee "$CLUSTER_CONF" >/dev/null
        trap 'as_root rm -f "$CLUSTER_CONF"' EXIT
        ;;
    esac
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${PACKAGES[@]}" </dev/null >&2
}

elsewhere() {
    case "$(uname)" in
    Darwin) say "with Homebrew: brew install postgresql@17 openjdk@17 maven pkgconf openssl@3 python@3" ;;
    *) say "Fedora: dnf install gcc gcc-c++ make perl pkgconf openssl-devel zlib-devel procps-ng postgresql-server java-17-openjdk-headless maven python3" ;;
    esac
    die 3 "install these by your system's means, then run this again"
}

main() {
    local what
    check_rust
    look
    if [ ${#MISSING[@]} = 0 ]; then return; fi
    for what in "${MISSING[@]}"; do say "missing: $what"; done
    if [ "${1:-}" = --check ]; then exit 3; fi
    if have apt-get; then apt_install; else elsewhere; fi
    MISSING=()
    PACKAGES=()
    look
    if [ ${#MISSING[@]} != 0 ]; then die 3 "still missing: ${MISSING[*]}"; fi
    say "all there"
}

main "$@"
