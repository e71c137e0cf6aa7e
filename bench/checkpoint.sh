#!/usr/bin/env bash
# Saves and loads a table beside what a plain writer and reader of the same bytes
# reach on the same disk, and times pulls and events while a checkpoint is being
# written and while none is; prints a table, and writes a JSON file to
# bench/results.
#
#   bench/checkpoint.sh             1.5 GB on this machine's CPU, in two minutes
#   bench/checkpoint.sh --quick     tiny sizes: that all run, no figures
#   bench/checkpoint.sh --help      all flags
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
exec python3 "$root/bench/report/checkpoint.py" "$@"
