"""Does the same works in PyTorch and Triton, and prints them beside ours.

  python3 peers.py [--ours=FILE] [--out=FILE] [WORK ...]

Inputs have the sizes and laws of bench/kernels/cuda_*_bench.cc, from seeds of
their own. Each ratio is to the time in which this process saw the device copy
the floor bytes (works.py). `--ours` is what rowhouse_gpu_bench wrote with
--benchmark_out in the same run.
"""
import argparse
import json
import pathlib
import sys

import compare
from works import WORKS


def parse(arguments):
    keys = [work.key for work in WORKS]
    parser = argparse.ArgumentParser(prog="peers.py")
    parser.add_argument("works", nargs="*", metavar="WORK",
                        help=f"some of {', '.join(keys)}; all when none is given")
    parser.add_argument("--ours", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE",
                        help="JSON of the peers' times")
    options = parser.parse_args(arguments)
    for key in options.works:
        if key not in keys:
            parser.error(f"{key} is no work; there are {', '.join(keys)}")
    options.works = options.works or keys
    return options


def modules():
    """PyTorch and the peers, or the end of the process."""
    try:
        import torch
        import triton  # noqa: F401
    except ImportError as fault:
        sys.exit(f"peers.py: {fault}; it needs PyTorch with CUDA, and Triton")
    if not torch.cuda.is_available():
        sys.exit("peers.py: PyTorch finds no CUDA device; it needs one")
    import rows
    import timing
    import tokens
    return torch, timing, {**rows.PEERS, **tokens.PEERS}


def run(keys):
    torch, timing, peers = modules()
    rate = timing.copy_rate()
    torch.cuda.empty_cache()  # The whole table leaves little.
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; "
          f"copies {rate / 1e12:.2f} TB/s", file=sys.stderr)
    times = {}
    for key in keys:
        times[key] = []
        for name, floor_bytes, ms in peers[key]():
            ratio = ms * 1e-3 * rate / floor_bytes
            times[key].append({"name": name, "ms": ms, "ratio": ratio})
            print(f"{key}: {name}: {ms:.3f} ms, {ratio:.2f} x the floor",
                  file=sys.stderr)
        torch.cuda.empty_cache()
    return {"device": torch.cuda.get_device_name(), "copy_rate": rate,
            "torch": torch.__version__, "works": times}


def main(arguments):
    options = parse(arguments)
    our_times = {}
    if options.ours is not None:
        our_times = compare.ours(json.loads(options.ours.read_text()))
    output = run(options.works)
    if options.out is not None:
        options.out.write_text(json.dumps(output, indent=1) + "\n")
    print(compare.table(our_times, output["works"]), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
