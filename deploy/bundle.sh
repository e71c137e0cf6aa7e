#!/usr/bin/env bash
# Builds the bundle for GPU hosts and checks it: build/bundle/rowhouse-bundle.tar.xz.
# Needs a CUDA toolkit and what deploy/setup.sh installs; no GPU. Arguments go to
# the configuration, say -DCMAKE_CUDA_ARCHITECTURES=90.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/build/venv/bin:$PATH"
cmake --preset bundle "$@"
cmake --build --preset bundle --parallel "${ROWHOUSE_JOBS:-$(nproc)}" --target bundle
python3 tests/install/bundle_test.py build/bundle
