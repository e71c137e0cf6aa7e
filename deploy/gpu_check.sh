#!/usr/bin/env bash
# Checks and measures an unpacked bundle (deploy/bundle.sh) on a machine with a
# GPU. Lies in the bundle's deploy/.
#
#   deploy/gpu_check.sh [--out DIR] [--seconds N] [--device N] [STAGE ...]
#
# --device counts the GPUs that are visible (CUDA_VISIBLE_DEVICES); 0 else.
#
#   machine   the card, the driver, and that every program finds its libraries
#   correct   all tests; what would be skipped for want of a GPU fails
#   sanitize  compute-sanitizer over the kernels' tests, few cases of each
#   table     the whole n-gram table, created, loaded and timed over gRPC
#   speed     our benchmarks of the CUDA backend (times.json)
#   peers     the same works in PyTorch and Triton, beside `speed` (table.md)
#   lm_head   the LM head, beside PyTorch and public kernels (lm_head.md)
#   profile   what ncu says of the kernels that `speed` times (profile.csv)
#   suite     every operation of the backend (suite.json)
#   demo      the demo trains with --backend=cuda
#   two       what needs two GPUs: transports between processes on them, and
#             their speed (two.json)
#   table2    the whole n-gram table and an LM head on two GPUs, two trainers
#   cycle     whole training cycles over every transport (cycle/)
#   checkpoint  a table of 20 GB saved and loaded, and calls timed while it is
#             being saved (checkpoint/)
#
# Without stages: machine correct sanitize speed peers. A stage ends at its own
# limit, all of them together after N seconds (560); those for which no time is
# left are not run, and count as failed. DIR (gpu_check) gets log.txt, a
# summary.json and what is named above. Exit code 0: all were well.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

out=gpu_check
budget=560
device=0
stages=()
while (($# > 0)); do
  case "$1" in
    --out) out=$2; shift ;;
    --seconds) budget=$2; shift ;;
    --device) device=$2; shift ;;
    machine | correct | sanitize | table | speed | peers | lm_head | profile | suite | demo | cycle | checkpoint | two | table2)
      stages+=("$1") ;;
    *)
      echo "$1 is no stage and no flag; the head of $0 lists both" >&2
      exit 2 ;;
  esac
  shift
done
((${#stages[@]} > 0)) || stages=(machine correct sanitize speed peers)
# One GPU for all, and the first of every program.
IFS=, read -ra visible <<<"${CUDA_VISIBLE_DEVICES:-}"
if ((${#visible[@]} > 0 && device >= ${#visible[@]})); then
  echo "--device is $device; ${#visible[@]} GPUs are visible, counted from 0" >&2
  exit 2
fi
export of_two='*PeerLink*/cuda:*LinkProcess*/cuda:LinkDeviceTest.*:*WholeModel*/cuda'
# The stages that need two take the one and the next.
export pair=${visible[device]:-$device},${visible[device + 1]:-$((device + 1))}
export CUDA_VISIBLE_DEVICES=${visible[device]:-$device}
device=0
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
end=$((SECONDS + budget))
bin=$root/bin
log=$out/log.txt
: >"$log"

# A library as a Python package has it, where the loader knows of none.
find_library() {
  local folder
  folder=$(python3 - "$1" <<'PY'
import glob, site, sys
roots = site.getsitepackages() + [site.getusersitepackages()] + sys.path
found = [f for r in roots for f in glob.glob(r + "/nvidia/*/lib/" + sys.argv[1])]
print(found[0].rsplit("/", 1)[0] if found else "")
PY
  )
  [[ -n $folder ]] && export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}
find_libraries() {
  if ldd "$bin/rowhouse-server" | grep -q 'libcublasLt.* not found'; then
    find_library 'libcublasLt.so.*'
  fi
  # Programs open it themselves.
  [[ -e /usr/local/cuda/lib64/libnccl.so.2 ]] || find_library libnccl.so.2
}

machine_limit=60
machine() {
  local missing=0 program
  nvidia-smi --query-gpu=name,driver_version,memory.total,memory.used,clocks.sm \
    --format=csv || missing=1
  uname -srm
  getconf GNU_LIBC_VERSION
  cat "$root/COMMIT"
  for program in "$bin"/*; do
    if ldd "$program" | grep 'not found'; then
      echo "$(basename "$program") lacks the libraries above"
      missing=1
    fi
  done
  "$bin/rowhouse-server" --version || missing=1
  return $missing
}

# What needs two GPUs has its own stages.
correct_limit=400
correct() {
  ROWHOUSE_REQUIRE_GPU=1 "$bin/rowhouse_gpu_tests" --gtest_brief=1 \
    --gtest_filter="-$of_two" --gtest_output="json:$out/correct.json"
}

# Four tools on the kernels' tests; serving is left out: it is the same kernels.
# That memory is asked for in vain is what some tests are of. Racecheck takes
# seconds for a case of a dense gradient, so it gets fewer. The test that makes
# the device fault is left out.
sanitize_limit=400
sanitize() {
  local tool failed=0
  for tool in memcheck initcheck synccheck racecheck; do
    local cases=20
    [[ $tool == racecheck ]] && cases=2
    echo "-- $tool"
    ROWHOUSE_REQUIRE_GPU=1 ROWHOUSE_TEST_CASES=${ROWHOUSE_TEST_CASES:-$cases} \
      timeout 200 compute-sanitizer \
      --tool "$tool" --report-api-errors no --error-exitcode 9 \
      --print-limit 20 "$bin/rowhouse_gpu_tests" --gtest_brief=1 \
      --gtest_filter='Cuda/*:*Differential*-*Large*' 2>&1 | grep -v '\[info\]'
    local code=${PIPESTATUS[0]}
    echo "-- $tool ended with code $code"
    ((code == 0)) || failed=1
  done
  return $failed
}

# Starts a server of backend $1; `address` is where.
start_server() {
  printf 'cluster_id: "check" server_index: 0 server_count: 1\n' \
    >"$work/server.textproto"
  "$bin/rowhouse-server" --config="$work/server.textproto" --backend="$1" \
    --device="$device" --listen=127.0.0.1:0 >"$work/listening" &
  server=$!
  for _ in $(seq 600); do
    address=$(sed -n 's/^rowhouse-server listening on //p' "$work/listening")
    [[ -n $address ]] && return 0
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  echo "the server did not say where it listens"
  return 1
}

# The whole table, and a small one with as many rows touched in an event.
table_limit=300
table() {
  start_server cuda || return 1
  local rowhouse=("$bin/rowhouse" "--servers=$address" --timeout=120) failed=0
  "${rowhouse[@]}" create ngrams --rows=84602880 --dim=768 --reduction=mean \
    --max-rows=400000 --uniform=0.02 --seed=1 || failed=1
  "${rowhouse[@]}" status || failed=1
  "${rowhouse[@]}" pull ngrams 0 2796202 2796203 42301440 84602879 || failed=1
  "${rowhouse[@]}" digest ngrams || failed=1
  # What is too much is refused, and nothing else suffers.
  if "${rowhouse[@]}" create again --rows=84602880 --dim=768 \
    --reduction=mean --max-rows=400000; then
    echo "two whole tables found room on one GPU"
    failed=1
  fi
  kill -TERM "$server"
  wait "$server" || failed=1
  local rows
  for rows in 1048576 84602880; do
    start_server cuda || return 1
    "$bin/rowhouse" --servers="$address" --timeout=120 bench --rows=$rows \
      --dim=768 --batch=64Ki --seconds=15 || failed=1
    kill -TERM "$server"
    wait "$server" || failed=1
  done
  return $failed
}

speed_limit=300
speed() {
  "$bin/rowhouse_gpu_bench" --backend=cuda --device="$device" \
    --benchmark_filter='^Cuda[^H]' --benchmark_repetitions=3 \
    --benchmark_min_time=0.05 --benchmark_out="$out/times.json" \
    --benchmark_out_format=json
}

peers_limit=300
peers() {
  local ours=()
  [[ -s $out/times.json ]] && ours=("--ours=$out/times.json")
  set -o pipefail
  python3 "$root/bench/peers/peers.py" \
    "${ours[@]}" --out="$out/peers.json" | tee "$out/table.md"
}

# A process a case: what one takes of memory is not the next one's.
lm_head_limit=150
lm_head() {
  local what shape failed=0 ours=()
  for shape in 8192/dim:4096/rows:128256 16384/dim:768/rows:50304; do
    for what in Keep Lean HiddenGradientFirst Forward; do
      ours+=("$work/$what.${shape%%/*}.json")
      "$bin/rowhouse_gpu_bench" --backend=cuda --device="$device" \
        --benchmark_filter="^CudaHead$what/tokens:$shape" \
        --benchmark_min_time=0.3 --benchmark_out="${ours[-1]}" \
        --benchmark_out_format=json || failed=1
    done
  done
  python3 "$root/bench/peers/lm_head.py" --out="$out/lm_head.json" \
    --ours "${ours[@]}" | tee "$out/lm_head.md"
  ((PIPESTATUS[0] == 0)) || failed=1
  return $failed
}

# The kernels' launches in the works that come near their bars, without those
# that fill tables.
profile_limit=150
profile() {
  local counters=gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum
  counters+=,sm__warps_active.avg.pct_of_peak_sustained_active
  counters+=,smsp__issue_active.avg.pct_of_peak_sustained_active
  local one=$work/ncu.csv what failed=0
  : >"$out/profile.csv"
  for what in SortedEvent/rows:10575360 EmbeddingGradient/spread:0 Ngram; do
    ncu --clock-control none --metrics "$counters" --csv --launch-count 6 \
      --kernel-name-base function --kernel-name 'regex:^(?!FillUniform).*' \
      --log-file "$one" "$bin/rowhouse_gpu_bench" --backend=cuda \
      --device="$device" --benchmark_filter="^Cuda$what" \
      --benchmark_min_time=0 || failed=1
    grep '^"' "$one" >>"$out/profile.csv"
  done
  return $failed
}

suite_limit=400
suite() {
  "$bin/rowhouse_gpu_bench" --backend=cuda --device="$device" \
    --benchmark_filter='-^Cuda' --benchmark_min_time=0.05 \
    --benchmark_out="$out/suite.json" --benchmark_out_format=json
}

# The demo on the GPU; its n-gram table's push log, recorded meanwhile, replayed
# on servers of either backend, which must come to the recorded digest.
demo_limit=200
demo() {
  "$bin/rowhouse_ngram_lm" --backend=cuda --device="$device" \
    --text="$root/text/kjv.txt" --output="$work/demo" >"$work/demo.txt" &
  local training=$! failed=0 servers= log=$work/ngrams.rhlog
  until [[ $servers == *,* ]]; do
    kill -0 $training || { echo "the demo started no servers"; return 1; }
    sleep 0.02
    servers=$(sed -n 's/^server [0-9]*: //p' "$work/demo.txt" | paste -sd,)
  done
  # Until the table is there.
  until "$bin/rowhouse" "--servers=$servers" record ngrams "$log" --until=200 \
    >"$work/record.txt" 2>&1; do
    kill -0 $training || { cat "$work/record.txt"; return 1; }
    sleep 0.02
  done
  wait $training || failed=1
  cat "$work/demo.txt" "$work/record.txt"
  local kind digest recorded
  recorded=$(sed -n 's/^digest \([0-9a-f]*\) .*/\1/p' "$work/record.txt")
  for kind in cpu cuda; do
    start_server "$kind" || return 1
    "$bin/rowhouse" "--servers=$address" --timeout=120 replay ngrams "$log" \
      --shards=1 || failed=1
    digest=$("$bin/rowhouse" "--servers=$address" digest ngrams)
    echo "$kind: $digest; recorded: $recorded"
    [[ -n $recorded && $digest == "$recorded "* ]] || failed=1
    kill -TERM "$server"
    wait "$server" || failed=1
  done
  return $failed
}

# Multicast stays off: links need none, and not every system may use it.
two_limit=420
two() {
  export CUDA_VISIBLE_DEVICES=$pair NCCL_NVLS_ENABLE=0 failed=0
  nvidia-smi topo -m
  ROWHOUSE_REQUIRE_GPU=1 timeout 200 \
    "$bin/rowhouse_gpu_tests" --gtest_brief=1 \
    --gtest_filter='*PeerLink*/cuda:*LinkProcess*/cuda:LinkDeviceTest.*' \
    --gtest_output="json:$out/two_tests.json" || failed=1
  # The same tests as on one GPU, with clients on the other.
  ROWHOUSE_REQUIRE_GPU=1 ROWHOUSE_TEST_CLIENT_DEVICE=1 timeout 100 \
    "$bin/rowhouse_gpu_tests" --gtest_brief=1 \
    --gtest_filter='*OneSidedProcess*/cuda' || failed=1
  "$bin/rowhouse_gpu_bench" --backend=cuda --device=0 --server-device=1 \
    --benchmark_filter='^(PeerGather|LinkPull|LinkPush|LossOverSlices)' \
    --benchmark_min_time=0.1 --benchmark_out="$out/two.json" \
    --benchmark_out_format=json || failed=1
  return $failed
}

table2_limit=300
table2() {
  CUDA_VISIBLE_DEVICES=$pair NCCL_NVLS_ENABLE=0 ROWHOUSE_REQUIRE_GPU=1 \
    "$bin/rowhouse_gpu_tests" \
    --gtest_filter='*WholeModel*/cuda'
}

# An eighth of the n-gram table, then all of it, the trainer on the same GPU; then
# the trainer on the host. In each cycle 393,216 rows.
cycle_limit=400
cycle() {
  local rows failed=0
  for rows in 10575360 84602880; do
    "$root/bench/cycle.sh" --bin="$bin" --backend=cuda --device="$device" \
      --gpu="$device" --rows=$rows --spans --out="$out/cycle/$rows" || failed=1
  done
  "$root/bench/cycle.sh" --bin="$bin" --backend=cuda --device="$device" \
    --rows=10575360 --spans --out="$out/cycle/host_cache" || failed=1
  return $failed
}

checkpoint_limit=300
checkpoint() {
  "$root/bench/checkpoint.sh" --bin="$bin" --backend=cuda --device="$device" \
    --rows=13000000 --batch=98304 --seconds=30 --repeats=2 \
    --out="$out/checkpoint"
}

# A stage runs as a process of its own, which its time limit ends with all that
# it started.
run_stage() {
  local left=$((end - SECONDS)) limit=${1}_limit
  limit=${!limit}
  ((left > 5)) || { echo "no time is left for it"; return 124; }
  ((limit < left)) || limit=$left
  export root out work bin device
  # shellcheck disable=SC2046
  export -f start_server $(declare -F | awk '{print $3}' | grep -x "$1")
  timeout --kill-after=10 "$limit" bash -uc "$1"
}

find_libraries
failed=0
summary=()
for stage in "${stages[@]}"; do
  start=$SECONDS
  printf '\n== %s\n' "$stage" | tee -a "$log"
  run_stage "$stage" 2>&1 | tee -a "$log"
  code=${PIPESTATUS[0]}
  ((code == 0)) || failed=1
  case $code in
    0) ended="well" ;;
    124 | 137) ended="out of time" ;;
    *) ended="failed with code $code" ;;
  esac
  printf '== %s: %s, %d s\n' "$stage" "$ended" $((SECONDS - start)) | tee -a "$log"
  summary+=("{\"stage\": \"$stage\", \"ended\": \"$ended\", \"seconds\": $((SECONDS - start))}")
done
joined=$(printf ', %s' "${summary[@]}")
printf '{"commit": "%s", "stages": [%s]}\n' \
  "$(cat "$root/COMMIT" 2>/dev/null)" "${joined:2}" >"$out/summary.json"
exit $failed
