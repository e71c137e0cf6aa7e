#!/usr/bin/env bash
# Builds the project and runs its tests, on a Debian 12 machine, as root where
# packages are missing. Safe to run twice.
#
#   deploy/test.sh          the release build and all its tests
#   deploy/test.sh --full   also: clang with thread-safety analysis, clang-tidy,
#                           ASan + UBSan, TSan, the bundle for GPU hosts where
#                           nvcc is installed, every benchmark once, all seeds
set -euo pipefail
cd "$(dirname "$0")/.."

full=false
for argument in "$@"; do
  case "$argument" in
    --full) full=true ;;
    *) echo "unknown argument: $argument (wanted: --full or none)" >&2; exit 2 ;;
  esac
done

jobs=$(nproc)
say() { printf '\n== %s\n' "$*"; }

build() {  # build PRESET [TARGET ...]
  local preset=$1
  shift
  say "building: $preset"
  cmake --preset "$preset" >"build/$preset.log" || { cat "build/$preset.log"; exit 1; }
  cmake --build --preset "$preset" --parallel "$jobs" ${@:+--target "$@"}
}

if $full; then
  bash deploy/setup.sh deploy/packages.txt deploy/packages-full.txt
else
  bash deploy/setup.sh
fi
mkdir -p build
export PATH="$PWD/build/venv/bin:$PATH"

if $full; then
  build clang
  say "clang-tidy"
  bash deploy/tidy.sh build/clang
  build asan
  say "tests under ASan and UBSan"
  ctest --preset asan --parallel "$jobs"
  build tsan tsan_tests
  say "tests under TSan"
  ctest --preset tsan
  if command -v nvcc >/dev/null; then
    say "the bundle for GPU hosts"
    bash deploy/bundle.sh
  else
    say "no nvcc: the CUDA compile is skipped"
  fi
  export ROWHOUSE_ALL_SEEDS=1
fi

build release
if $full; then
  say "every benchmark once"
  for benchmark in build/release/bench/*/*_bench; do
    "$benchmark" --benchmark_min_time=0.01
  done
fi
say "tests"
ctest --preset release --parallel "$jobs"
