#!/usr/bin/env bash
# Runs the benchmarks, prints a table, and writes a JSON file and a chart to
# bench/results. bench/README.md says how to read them.
#
#   bench/run.sh                    everything, in some five minutes
#   bench/run.sh GatherRows         the cases whose name a regular expression finds
#   bench/run.sh --quick            tiny sizes: that all run, no figures
#   bench/run.sh --out DIR ...      write to DIR
#   bench/run.sh --help             all flags
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
exec python3 "$root/bench/report/run.py" "$@"
