"""Builds and runs the benchmarks; writes one JSON file and one chart.

See bench/run.sh and bench/README.md.
"""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import machine
from chart import chart
from results import CPU_BARS, ceilings, context, summarize
from table import number, table

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARIES = ("kernels/kernels_bench", "server/server_bench")


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="bench/run.sh", description="Runs the benchmarks; writes one JSON "
        "file and one chart.")
    parser.add_argument("filter", nargs="?", metavar="FILTER",
                        help="regular expression of the cases to run")
    parser.add_argument("--quick", action="store_true",
                        help="tiny sizes, once: that all run, no figures")
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR",
                        help="where to write (bench/results; a quick run, or one "
                        "with a filter: build/bench)")
    parser.add_argument("--build", type=pathlib.Path, metavar="DIR",
                        help="a finished build to run; without it the release "
                        "preset is built first")
    parser.add_argument("--repetitions", type=int, metavar="N",
                        help="times that each case is measured (5; quick: 1)")
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--device", type=int, default=0, metavar="N",
                        help="of the cuda backend")
    parser.add_argument("--threads", type=int, default=0, metavar="N",
                        help="of the cpu backend (one per core)")
    options = parser.parse_args(arguments)
    if options.out is None:
        part = options.quick or options.filter
        options.out = ROOT / ("build/bench" if part else "bench/results")
    if options.repetitions is None:
        options.repetitions = 1 if options.quick else 5
    return options


def build():
    """Builds the release preset; returns its folder."""
    for command in (["cmake", "--preset", "release"],
                    ["cmake", "--build", "--preset", "release", "--parallel",
                     str(os.cpu_count()), "--target", "benchmarks"]):
        if subprocess.run(command, cwd=ROOT, check=False,
                          stdout=sys.stderr).returncode != 0:
            sys.exit(f"{' '.join(command)} failed")
    return ROOT / "build/release"


def environment():
    """OpenBLAS takes processors newer than itself for very old ones."""
    env = dict(os.environ)
    flags = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    for flag, kernels in (("avx512f", "SkylakeX"), ("avx2", "Haswell")):
        if flag in flags:
            env.setdefault("OPENBLAS_CORETYPE", kernels)
    return env


def command_of(binary, options):
    command = [str(binary), f"--backend={options.backend}",
               f"--device={options.device}", f"--threads={options.threads}"]
    if options.filter:
        command.append(f"--benchmark_filter={options.filter}")
    if options.quick:
        command.append("--quick")
    return command


def run(binary, options, env):
    """Its JSON output; None where the filter leaves it nothing."""
    command = command_of(binary, options)
    if options.filter:
        listed = subprocess.run(command + ["--benchmark_list_tests=true"],
                                env=env, capture_output=True, check=False)
        if not listed.stdout:
            return None
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.json"
        said = pathlib.Path(folder) / "stderr"
        command += [
            f"--benchmark_out={out}", "--benchmark_out_format=json",
            f"--benchmark_min_time={0.001 if options.quick else 0.1}",
            f"--benchmark_repetitions={options.repetitions}"]
        with said.open("w", encoding="utf-8") as stderr, \
                subprocess.Popen(command, env=env, text=True, stderr=stderr,
                                 stdout=subprocess.PIPE) as process:
            follow(process.stdout)
        try:
            return json.loads(out.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # It ended before its time.
            sys.exit(f"{binary.name} ended with code {process.returncode}:\n"
                     + said.read_text(encoding="utf-8"))


def follow(lines):
    """Says which case is running."""
    last = None
    for line in lines:
        name = line.split("/real_time")[0]
        if name != line and name != last:
            print(f"  {name}", file=sys.stderr, flush=True)
            last = name


def measure(options, folder):
    """The whole report, as it is written."""
    report = {"format": 1,
              "date": datetime.datetime.now(datetime.timezone.utc).strftime(
                  "%Y-%m-%dT%H:%M:%SZ"),
              "quick": options.quick, "machine": machine.machine(),
              "source": machine.source(str(ROOT)),
              "build": machine.build(folder), "context": {},
              "ceilings": {}, "results": []}
    busy = report["machine"]["load_before"]
    if busy > 0.3 and not options.quick:
        print(f"others are at work on this machine (load {busy}): the figures "
              "will be of both", file=sys.stderr)
    bars = CPU_BARS if options.backend == "cpu" and not options.quick else {}
    for path in BINARIES:
        binary = folder / "bench" / path
        if not binary.exists():
            sys.exit(f"there is no {binary}; build the target `benchmarks`")
        print(binary.name, file=sys.stderr)
        output = run(binary, options, environment())
        if output is None:
            continue
        report["context"][binary.name] = context(output)
        report["results"] += [{**result, "binary": binary.name}
                              for result in summarize(output, bars)]
    report["ceilings"] = ceilings(report["results"])
    return report


def write(report, options):
    """Writes both files; returns their common path without its end."""
    name = f"{report['date'][:10]}-{machine.slug(report['machine'])}"
    name += f"-{options.backend}" + ("-quick" if options.quick else "")
    name += "-part" if options.filter else ""
    path = options.out / name
    options.out.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".json").write_text(
        json.dumps(report, indent=1) + "\n", encoding="utf-8")
    title = (f"{report['machine']['cpu']}, {report['machine']['cores']} cores, "
             f"{options.backend}, commit {report['source']['commit']}, "
             f"{report['date'][:10]}")
    path.with_suffix(".svg").write_text(chart(title, report["results"]),
                                        encoding="utf-8")
    return path


def main(arguments):
    options = parse(arguments)
    folder = options.build or build()
    report = measure(options, folder)
    if not report["results"]:
        sys.exit(f"no case matches {options.filter}")
    path = write(report, options)
    print(table(report["results"]))
    if report["ceilings"]:
        print("\nceilings: " + ", ".join(
            f"{kind} {number(rate, 'FLOP/s' if kind == 'sgemm' else 'B/s')}"
            for kind, rate in report["ceilings"].items()))
    if options.quick:
        print("\na quick run: these are no figures")
    print(f"\nwritten: {path}.json, {path}.svg")
    return 1 if any("error" in result for result in report["results"]) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
