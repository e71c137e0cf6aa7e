#!/usr/bin/env bash
# Runs whole training cycles over TCP, a Unix socket and the one-sided path, with
# row ids sent in the cycle before and when a cycle begins; prints the stages side
# by side, and writes a picture and a JSON file to bench/results.
#
#   bench/cycle.sh             2 million rows of 768 bf16, in a minute or two
#   bench/cycle.sh --quick     tiny sizes: that all run, no figures
#   bench/cycle.sh --help      all flags
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
exec python3 "$root/bench/report/cycle.py" "$@"
