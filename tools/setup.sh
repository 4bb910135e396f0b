#!/bin/sh
# Behind `make demo` and `make test`: installs the system packages that are missing, then builds and runs.
#   tools/setup.sh demo    plan examples/llama3_405b.par and write its launch files to out/
#   tools/setup.sh test    everything CI checks
# LLVM=no builds without the LLVM back end. On Debian and its kin packages come from apt, as root or through sudo,
# after saying which and why; elsewhere they are named, and nothing is installed.

set -eu
cd "$(dirname "$0")/.."

LLVM=${LLVM:-yes}
LLVM_MAJOR=22
TARGET_DIR=${CARGO_TARGET_DIR:-target}

say() { printf '%s\n' "$*"; }
stop() {
    printf '%s\n' "$*" >&2
    exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }

case $LLVM in
yes) scope=--workspace ;;
no) scope='--package parc --no-default-features' ;;
*) stop "LLVM is yes or no, not '$LLVM'" ;;
esac

# What a package is for, as said before it is installed.
purpose() {
    case $1 in
    build-essential) say "the linker that Rust programs need" ;;
    "llvm-$LLVM_MAJOR-dev") say "compiles cost evaluators to native code" ;;
    "libpolly-$LLVM_MAJOR-dev") say "a part of LLVM that its own configuration asks for" ;;
    libzstd-dev | zlib1g-dev) say "compression libraries that LLVM links" ;;
    shellcheck) say "checks the shell scripts, of this project and of launch plans" ;;
    *) say "" ;;
    esac
}

# The Debian packages for $1 (demo or test). LLVM from elsewhere is the user's to name.
wanted() {
    has cc || say build-essential
    [ "$LLVM" = no ] || [ -n "${LLVM_SYS_221_PREFIX:-}" ] || say "llvm-$LLVM_MAJOR-dev libpolly-$LLVM_MAJOR-dev libzstd-dev zlib1g-dev"
    [ "$1" = demo ] || say shellcheck
}

# Those of them that dpkg does not have.
missing() {
    for package in $(wanted "$1"); do
        status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
        [ "$status" = 'install ok installed' ] || say "$package"
    done
}

name_packages() {
    say "The packages are named"
    say "  Debian, Ubuntu  build-essential llvm-$LLVM_MAJOR-dev libpolly-$LLVM_MAJOR-dev libzstd-dev zlib1g-dev shellcheck"
    say "  Fedora          gcc llvm-devel libzstd-devel zlib-devel ShellCheck"
    say "  macOS           xcode-select --install; brew install llvm zstd shellcheck"
    say "LLVM has to be version $LLVM_MAJOR. To do without it: make $1 LLVM=no"
}

install_with_apt() {
    packages=$(missing "$1" | tr '\n' ' ')
    packages=${packages% }
    [ -n "$packages" ] || return 0
    say "Missing system packages:"
    for package in $packages; do
        printf '  %-20s %s\n' "$package" "$(purpose "$package")"
    done
    if [ "$(id -u)" = 0 ]; then
        root=
    elif has sudo && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
        root=sudo
    else
        name_packages "$1" >&2
        stop "They are not installed: this needs root, or sudo."
    fi
    say "Installing them: ${root:+sudo }apt-get install $packages"
    # shellcheck disable=SC2086 # lists of words
    {
        $root apt-get update -qq
        $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null
    } || {
        name_packages "$1" >&2
        stop "apt-get failed."
    }
}

# Without apt: look, and name what is not there.
look_for_tools() {
    lacking=
    has cc || lacking="$lacking a C compiler (cc),"
    if [ "$LLVM" = yes ]; then
        if [ -z "${LLVM_SYS_221_PREFIX:-}" ] && has brew && prefix=$(brew --prefix llvm 2>/dev/null); then
            [ ! -x "$prefix/bin/llvm-config" ] || export LLVM_SYS_221_PREFIX="$prefix"
        fi
        found=no
        for config in ${LLVM_SYS_221_PREFIX:+"$LLVM_SYS_221_PREFIX/bin/llvm-config"} \
            "llvm-config-$LLVM_MAJOR" "llvm-config$LLVM_MAJOR" llvm-config; do
            case $("$config" --version 2>/dev/null || true) in
            "$LLVM_MAJOR".*) found=yes ;;
            esac
        done
        [ $found = yes ] || lacking="$lacking LLVM $LLVM_MAJOR (llvm-config),"
    fi
    [ "$1" = demo ] || has shellcheck || lacking="$lacking shellcheck,"
    if [ -n "$lacking" ]; then
        say "Missing:${lacking%,}." >&2
        name_packages "$1" >&2
        exit 1
    fi
}

prepare() {
    has cargo || stop "Missing: cargo. Rust is installed as https://rustup.rs says."
    if has apt-get && has dpkg-query; then
        install_with_apt "$1"
    else
        look_for_tools "$1"
    fi
}

# Shows a command, then runs it.
run() {
    say "\$ $*"
    "$@"
}

demo() {
    # shellcheck disable=SC2086 # a list of words
    run cargo build --release $scope
    parc=$TARGET_DIR/release/parc
    run "$parc" plan examples/llama3_405b.par
    run "$parc" build examples/llama3_405b.par --target megatron --launcher slurm --out out/llama3_405b
}

# shellcheck disable=SC2086 # $scope is a list of words
test_all() {
    for component in fmt clippy; do
        cargo $component --version >/dev/null 2>&1 ||
            stop "Missing: cargo $component. With rustup: rustup component add rustfmt clippy"
    done
    run cargo fmt --all --check
    run cargo clippy $scope --all-targets -- -D warnings
    # The back end is opened at run time, so building the tests alone would leave it out. All in one go: without the
    # tests, some libraries would be built a second time, with fewer features.
    run cargo build $scope --all-targets
    if cargo nextest --version >/dev/null 2>&1; then
        run cargo nextest run $scope
    else
        run cargo test $scope --lib --bins --tests
    fi
    run cargo test $scope --doc
    [ "$LLVM" = no ] || run cargo check --workspace --no-default-features
    run shellcheck tools/*.sh .ci/run
    if cargo deny --version >/dev/null 2>&1; then
        run cargo deny --all-features check bans licenses sources
    fi
    say "all checks passed"
}

case ${1:-} in
demo)
    prepare demo
    demo
    ;;
test)
    prepare test
    test_all
    ;;
*) stop "usage: tools/setup.sh demo | test" ;;
esac
