#!/usr/bin/env bash
# Runs clang-tidy over the project's sources, with the compile commands of the
# build folder given.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files -- 'kernels/*.cc' 'proto/*.cc' 'server/*.cc' 'client/*.cc' |
  xargs -P "$(nproc)" -n 4 clang-tidy --quiet -p "$1" --warnings-as-errors='*'
