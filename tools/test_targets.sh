#!/bin/sh
# Behind `make test-targets ENV=DIR`: what parc writes, given to the frameworks themselves.
# DIR gets a Python environment with the versions below, about 6 GB, unless it has one; nothing else is installed.

set -eu
cd "$(dirname "$0")/.."

ENV=${ENV:-}
[ -n "$ENV" ] || {
    echo "name a folder for the frameworks' Python environment: make test-targets ENV=DIR" >&2
    exit 2
}
if [ ! -x "$ENV/bin/torchrun" ]; then
    python3 -m venv "$ENV"
    "$ENV/bin/pip" install torch==2.15.0 torchtitan==0.3.0 deepspeed==0.19.8 accelerate==1.15.0
fi

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cargo build --package parc
status=0

echo "== programs of --target torch, on 4 processes"
sed -n 's/^train \([a-z_]*\) {$/\1/p' tests/targets/small.par >"$out/jobs"
while read -r job; do
    "${CARGO_TARGET_DIR:-target}/debug/parc" build tests/targets/small.par "$job" --target torch --out "$out/$job" >/dev/null
    printf '%s ' "$job"
    if "$ENV/bin/torchrun" --nproc-per-node 4 tools/check_torch.py "$out/$job" >"$out/log" 2>&1 </dev/null; then
        grep '^{' "$out/log"
    else
        status=1
        echo "fails"
        cat "$out/log"
    fi
done <"$out/jobs"

echo "== configurations, in the frameworks' own loaders"
PARC_TARGET_SAMPLES="$out/samples" cargo test --quiet --package parc --test it samples_for_the_frameworks_own_loaders >/dev/null
"$ENV/bin/python" tools/check_loaders.py "$out/samples" || status=1
exit $status
