"""From what Google Benchmark writes to one list of results."""
import statistics

# The least shares of the ceiling that were set as goals for the CPU backend.
# The head's: within 1.5 times of bare products.
CPU_BARS = {
    "GatherRows/krows:1000/dim:768": 0.6,
    "ApplyRowAdamEvent/sorted/krows:1000/dim:768": 0.5,
    "AccumulateEmbeddingGradient/even/dim:768": 0.5,
    "HeadAll/kept:1": 0.667,
    "PullRows/batch:0": 0.45,
    "PushGradients": 0.45,
}

# What Google Benchmark says of each run beside the counters.
_NOT_COUNTERS = {
    "name", "family_index", "per_family_instance_index", "run_name", "run_type",
    "repetitions", "repetition_index", "threads", "iterations", "real_time",
    "cpu_time", "time_unit", "label", "error_occurred", "error_message",
}
_MS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}


def _rounded(value):
    return float(f"{value:.6g}")


def _spread(values):
    return {"median": _rounded(statistics.median(values)),
            "min": _rounded(min(values)), "max": _rounded(max(values))}


def _summary(name, runs, bars):
    errors = [run["error_message"] for run in runs if run.get("error_occurred")]
    if errors:
        return {"name": name, "error": errors[0]}
    result = {"name": name, "repetitions": len(runs),
              "time_ms": _spread([run["real_time"] * _MS[run["time_unit"]]
                                  for run in runs])}
    for counter in sorted(set(runs[0]) - _NOT_COUNTERS):
        values = [run[counter] for run in runs]
        result[counter] = (_spread(values) if counter == "of_ceiling"
                           else _rounded(statistics.median(values)))
    if name in bars:
        result["bar"] = bars[name]
    return result


def summarize(output, bars):
    """The cases of one binary's JSON output, each over its repetitions."""
    runs = {}
    for run in output["benchmarks"]:
        if run.get("run_type", "iteration") == "iteration":
            name = run["run_name"].removesuffix("/real_time")
            runs.setdefault(name, []).append(run)
    return [_summary(name, group, bars) for name, group in runs.items()]


def context(output):
    """What a binary says of itself: backend, code path, threads, BLAS kernels."""
    wanted = ("backend", "backend_threads", "openblas_kernels")
    return {key: output["context"][key] for key in wanted
            if key in output["context"]}


def ceiling_of(result):
    """Which ceiling a share is of: copy, sgemm, tcp; None without a share."""
    if "of_ceiling" not in result:
        return None
    if "flops" in result:
        return "sgemm"
    return "tcp" if result["binary"] == "server_bench" else "copy"


def ceilings(results):
    """The median ceiling of each kind, in bytes or FLOPs a second."""
    found = {}
    for result in results:
        if "ceiling" in result:
            found.setdefault(ceiling_of(result), []).append(result["ceiling"])
    return {kind: _rounded(statistics.median(values))
            for kind, values in sorted(found.items())}
