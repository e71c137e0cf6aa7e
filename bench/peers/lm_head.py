"""Times linear cross entropy, forward and backward, in PyTorch and public kernels.

  python3 lm_head.py [--out=FILE] [--ours FILE ...]

Shapes, and what is formed, are those of bench/kernels/cuda_head_bench.cc: the
hidden gradient, and the weight gradient added to an fp32 main_grad; bf16
operands. Memory is what is taken beside operands and main_grad. A kernel that is
not installed (liger-kernel, cut-cross-entropy) is left out, and named. `--ours`
are files that rowhouse_gpu_bench wrote with --benchmark_out in the same run.
"""
import argparse
import json
import pathlib
import statistics
import sys

SHAPES = ((8192, 4096, 128256), (16384, 768, 50304))
REPEATS = 7
# Milliseconds: must and ahead, by tokens and case.
GOALS = {(8192, "Keep"): (42, 39), (8192, "Lean"): (56, 50),
         (16384, "Keep"): (8, 7), (16384, "Lean"): (10, 8.5)}


def plain(torch, hidden, weight, target, main):
    loss = torch.nn.functional.cross_entropy(
        torch.nn.functional.linear(hidden, weight).float(), target)
    loss.backward()
    main.add_(weight.grad)


def liger(accumulate):
    from liger_kernel.ops.fused_linear_cross_entropy import (
        LigerFusedLinearCrossEntropyFunction as Function)

    def run(torch, hidden, weight, target, main):
        dtype = torch.float32 if accumulate else None
        out = Function.apply(hidden, weight, target, None, None, -100, 0.0, 0.0,
                             "mean", None, False, dtype)
        (out[0] if isinstance(out, tuple) else out).backward()
        main.add_(weight.grad)
    return run


def cut():
    from cut_cross_entropy import linear_cross_entropy

    def run(torch, hidden, weight, target, main):
        linear_cross_entropy(hidden, weight, target).backward()
        main.add_(weight.grad)
    return run


PEERS = (("plain PyTorch", lambda: plain),
         ("Liger, bf16 sums", lambda: liger(False)),
         ("Liger, fp32 sums", lambda: liger(True)),
         ("Cut Cross Entropy, its default filter", cut))


def measure(torch, work, tokens, dim, rows):
    generator = torch.Generator(device="cuda").manual_seed(3)
    hidden = torch.randn(tokens, dim, device="cuda", generator=generator)
    hidden = hidden.bfloat16().requires_grad_()
    weight = torch.randn(rows, dim, device="cuda", generator=generator)
    weight = (0.02 * weight).bfloat16().requires_grad_()
    target = torch.randint(rows, (tokens,), device="cuda", generator=generator)
    main = torch.zeros(rows, dim, device="cuda")
    times = []
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    for _ in range(REPEATS + 2):  # The first two compile and warm up.
        hidden.grad = weight.grad = None
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        start.record()
        work(torch, hidden, weight, target, main)
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    extra = torch.cuda.max_memory_allocated() - before
    return statistics.median(times[2:]), extra / 2**20


def ours(outputs):
    """Cells with their tokens, a case each, from what rowhouse_gpu_bench writes."""
    names = {"Keep": "Rowhouse, keep", "Lean": "Rowhouse, lean",
             "HiddenGradientFirst": "Rowhouse, until dH is there (keep)",
             "Forward": "Rowhouse, statistics alone (keep)"}
    for run in (run for output in outputs for run in output["benchmarks"]):
        case, *arguments = run["run_name"].split("/")
        case = case.removeprefix("CudaHead")
        tokens = int(arguments[0].removeprefix("tokens:"))
        ms = run["real_time"]
        goal = ""
        if (tokens, case) in GOALS:
            must, ahead = GOALS[tokens, case]
            goal = (f"ahead ({ahead})" if ms <= ahead else
                    f"met ({must})" if ms <= must else f"MISSED ({must})")
        yield tokens, [names[case], f"{ms:.2f}", goal, f"{run['extra_MiB']:,.0f}"]


def main(arguments):
    parser = argparse.ArgumentParser(prog="lm_head.py")
    parser.add_argument("--ours", type=pathlib.Path, metavar="FILE", nargs="*",
                        default=[])
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args(arguments)
    try:
        import torch
    except ImportError as fault:
        sys.exit(f"lm_head.py: {fault}; it needs PyTorch with CUDA")
    if not torch.cuda.is_available():
        sys.exit("lm_head.py: PyTorch finds no CUDA device; it needs one")
    mine = list(ours(json.loads(path.read_text()) for path in options.ours))
    print("| tokens, dim, rows | by | ms | goal | extra MiB |\n|---|---|---|---|---|")
    results = []
    for shape in SHAPES:
        what = ", ".join(f"{size:,}" for size in shape)
        for tokens, cells in mine:
            if tokens == shape[0]:
                print(f"| {what} | {' | '.join(cells)} |", flush=True)
        for name, make in PEERS:
            try:
                ms, extra = measure(torch, make(), *shape)
            except Exception as fault:  # Of whichever library it is.
                text = str(fault).splitlines()[0] if str(fault) else repr(fault)
                print(f"lm_head.py: {name}: {text}", file=sys.stderr)
                continue
            results.append({"shape": shape, "name": name, "ms": ms,
                            "extra_mib": extra})
            print(f"| {what} | {name} | {ms:.2f} | | {extra:,.0f} |", flush=True)
    if options.out is not None:
        options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
