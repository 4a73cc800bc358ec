#!/usr/bin/env bash
# Runs a command on a fresh Debian 12: a bare system in a folder of its own (chroot), with this machine's Rust and a copy
# of this checkout, nothing else. Shows that `make demo` and `make test` need no other command first.
#
#   fresh.sh COMMAND [ARGUMENT…]     on a new system, such as: fresh.sh make test
#   fresh.sh again COMMAND…          on the one that the last call left
#
# Needs root, debootstrap and unshare (packages debootstrap, util-linux).
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# The mirror this machine's own packages come from.
own_mirror() {
    # Not every machine has each of these files.
    { cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null || true; } |
        sed -nE 's/^(deb|URIs:) +(\[[^]]*\] +)?([a-z]+:[^ ]+).*/\3/p' | head -n 1
}

DIR=$STATE/fresh
MACHINE=$DIR/machine
CARGO=${CARGO_HOME:-$HOME/.cargo}
RUSTUP=${RUSTUP_HOME:-$HOME/.rustup}
SHARED=${SHARED:-$ROOT/../shared}
MIRROR=${MIRROR:-$(own_mirror)}

check() {
    local tool
    [ "$(id -u)" = 0 ] || die 3 "a chroot needs root"
    for tool in debootstrap unshare tar git; do
        have "$tool" || die 3 "$tool is missing"
    done
    [ -d "$RUSTUP/toolchains" ] || die 3 "no Rust toolchains under $RUSTUP"
}

# The bare system, once; what Rust itself needs to link, and make, are all that is added.
make_base() {
    if [ -d "$DIR/base" ]; then return; fi
    say "making a bare Debian 12 (once)"
    rm -rf "$DIR/base.new"
    debootstrap --variant=minbase --include=ca-certificates,gcc,libc6-dev,make bookworm "$DIR/base.new" "$MIRROR" >"$DIR/debootstrap.log" 2>&1 ||
        die 3 "debootstrap failed: $(tail -n 1 "$DIR/debootstrap.log")"
    # Authorities of this site, if it has any: the bare system must reach the same registries.
    if [ -d /usr/local/share/ca-certificates ]; then
        cp -r /usr/local/share/ca-certificates "$DIR/base.new/usr/local/share/"
        chroot "$DIR/base.new" update-ca-certificates >/dev/null 2>&1
    fi
    mv "$DIR/base.new" "$DIR/base"
}

make_machine() {
    # The toolchain is mounted into it: never delete through a mount.
    if grep -q " $MACHINE/" /proc/self/mounts; then die 3 "something is mounted below $MACHINE"; fi
    rm -rf "$MACHINE"
    cp -a "$DIR/base" "$MACHINE"
    mkdir -p "$MACHINE/src/main" "$MACHINE/src/shared" "$MACHINE/root/.cargo" "$MACHINE/root/.rustup"
    (cd "$ROOT" && git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -cf - -T -) |
        tar -xf - -C "$MACHINE/src/main"
}

# Runs inside namespaces of its own: the mounts and all processes end with it.
inside() {
    mount --bind "$CARGO" "$MACHINE/root/.cargo"
    mount --bind "$RUSTUP" "$MACHINE/root/.rustup"
    if [ -d "$SHARED" ]; then mount --bind -o ro "$SHARED" "$MACHINE/src/shared"; fi
    mount -t proc proc "$MACHINE/proc"
    mount --rbind /dev "$MACHINE/dev"
    cp -L /etc/resolv.conf "$MACHINE/etc/resolv.conf"
    # Not exec: this shell is the first process of its world and reaps what daemons leave behind.
    chroot "$MACHINE" /usr/bin/env -i HOME=/root TERM=dumb \
        PATH=/root/.cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        /bin/sh -c 'cd /src/main && exec "$@"' fresh "$@" </dev/null
}

case "${1:-}" in
"") die 2 "usage: fresh.sh [again] COMMAND [ARGUMENT…]" ;;
--inside)
    shift
    inside "$@"
    ;;
again)
    shift
    check
    [ -d "$MACHINE/src/main" ] || die 2 "there is no system from a call before"
    unshare --mount --pid --fork --kill-child "$HERE/fresh.sh" --inside "$@"
    ;;
*)
    check
    mkdir -p "$DIR"
    make_base
    make_machine
    unshare --mount --pid --fork --kill-child "$HERE/fresh.sh" --inside "$@"
    ;;
esac
