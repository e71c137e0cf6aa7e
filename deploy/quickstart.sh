#!/usr/bin/env bash
# Trains a language model on this machine: two shard servers and two trainers
# on loopback. Installs what is missing on a Debian 12 machine (as root),
# builds what is needed, and runs it. Safe to run twice.
#
#   deploy/quickstart.sh                     the text that comes with it
#   deploy/quickstart.sh --text=FILE         any UTF-8 text
#   deploy/quickstart.sh --shards=1 ...      --help lists all flags
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

bash "$root/deploy/setup.sh"
export PATH="$root/build/venv/bin:$PATH"
(
  cd "$root"
  echo "== building"
  cmake --preset release >build/release.log || { cat build/release.log; exit 1; }
  cmake --build --preset release --parallel "$(nproc)" \
    --target rowhouse-server rowhouse_ngram_lm
)

# Debian's OpenBLAS takes processors newer than itself for very old ones; name
# the kernels that this one can run.
if [ -z "${OPENBLAS_CORETYPE:-}" ]; then
  if grep -qw -m1 avx512f /proc/cpuinfo; then
    export OPENBLAS_CORETYPE=SkylakeX
  elif grep -qw -m1 avx2 /proc/cpuinfo; then
    export OPENBLAS_CORETYPE=Haswell
  fi
fi
export OPENBLAS_NUM_THREADS=1

exec "$root/build/release/client/examples/ngram_lm/rowhouse_ngram_lm" \
  --text="$root/client/examples/ngram_lm/kjv.txt" \
  --output="$root/build/ngram_lm_run" "$@"
