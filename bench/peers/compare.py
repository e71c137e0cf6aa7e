"""One table of our own times and the peers'. Needs no PyTorch."""
import re
import statistics

from works import WORKS

_MS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}


def ours(output):
    """Times and ratios by case, medians over the repetitions, from what
    rowhouse_gpu_bench writes."""
    runs = {}
    for run in output["benchmarks"]:
        if (run.get("run_type", "iteration") == "iteration"
                and not run.get("error_occurred") and "ratio" in run):
            # The suffix says how it was timed, and what bounded the run.
            name = re.sub(r"(/(manual_time|repeats:\d+|min_time:[0-9.]+))+$", "",
                          run["run_name"])
            runs.setdefault(name, []).append(run)
    return {name: {"ms": statistics.median(
                       run["real_time"] * _MS[run["time_unit"]]
                       for run in group),
                   "ratio": statistics.median(run["ratio"] for run in group)}
            for name, group in runs.items()}


def goal(work, ratio):
    if work.must is None:
        return ""
    if ratio <= work.ahead:
        return f"ahead ({work.ahead:.2f})"
    if ratio <= work.must:
        return f"met ({work.must:.2f})"
    return f"MISSED ({work.must:.2f})"


def rows(our_times, peers):
    """Cells of the table; `peers` are lists of name, ms and ratio by work."""
    for work in WORKS:
        mine = our_times.get(work.ours)
        found = peers.get(work.key, [])
        if mine is None and not found:
            continue
        yield [work.what, "Rowhouse",
               "not run" if mine is None else f"{mine['ms']:.3f}",
               "" if mine is None else f"{mine['ratio']:.2f}",
               "" if mine is None else goal(work, mine["ratio"]), ""]
        for peer in found:
            faster = "" if mine is None else f"{peer['ms'] / mine['ms']:.2f} x"
            yield ["", peer["name"], f"{peer['ms']:.3f}", f"{peer['ratio']:.2f}",
                   "", faster]


def table(our_times, peers):
    """Markdown."""
    head = ["work", "by", "ms", "to the floor", "goal", "ours is faster"]
    lines = [head, ["---"] * len(head), *rows(our_times, peers)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
