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


class Failed(Exception):
    """A binary's own fault; its text may name paths."""


def at_least(least):
    def number_from(text):
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{value} is less than {least}")
        return value
    number_from.__name__ = "number"  # What argparse says was wanted.
    return number_from


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
    parser.add_argument("--repetitions", type=at_least(1), metavar="N",
                        help="times that each case is measured (5; quick: 1)")
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--device", type=at_least(0), default=0, metavar="N",
                        help="of the cuda backend")
    parser.add_argument("--threads", type=at_least(0), default=0, metavar="N",
                        help="of the cpu backend (one per core)")
    options = parser.parse_args(arguments)
    if options.out is None:
        part = options.quick or options.filter
        options.out = ROOT / ("build/bench" if part else "bench/results")
    if options.repetitions is None:
        options.repetitions = 1 if options.quick else 5
    return options


def make_room(folder):
    """Shows before anything is measured that results can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as fault:
        sys.exit(f"cannot write to {folder}: {fault.strerror}")


def build(*targets):
    """Builds targets of the release preset; returns its folder."""
    for command in (["cmake", "--preset", "release"],
                    ["cmake", "--build", "--preset", "release", "--parallel",
                     str(os.cpu_count()), "--target", *targets]):
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


def has_cases(command, env):
    """Whether the filter leaves it any."""
    listed = subprocess.run(command + ["--benchmark_list_tests=true"], env=env,
                            capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        return True
    if "Failed to match any benchmarks" in listed.stderr:
        return False
    raise Failed(ending(listed.returncode, listed.stderr))


def ending(code, said):
    return f"ended with code {code}\n{said}".rstrip()


def run(binary, options, env):
    """Its JSON output, and how it ended where that was not well."""
    command = command_of(binary, options)
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
        end = ending(process.returncode, said.read_text(encoding="utf-8"))
        try:
            output = json.loads(out.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # It ended before its time.
            raise Failed(end) from None
    # A case that failed is a result, and a code of 1.
    expected = any(r.get("error_occurred") for r in output["benchmarks"])
    return output, None if process.returncode == int(expected) else end


def follow(lines):
    """Says which case is running."""
    last = None
    for line in lines:
        name = line.split("/real_time")[0]
        if name != line and name != last:
            print(f"  {name}", file=sys.stderr, flush=True)
            last = name


def collect(binary, options, report):
    """Adds one binary's results to the report; raises Failed."""
    env = environment()
    if options.filter and not has_cases(command_of(binary, options), env):
        return
    output, fault = run(binary, options, env)
    bars = CPU_BARS if options.backend == "cpu" and not options.quick else {}
    report["context"][binary.name] = context(output)
    report["results"] += [{**result, "binary": binary.name}
                          for result in summarize(output, bars)]
    if fault:
        raise Failed(fault)


def measure(options, folder, facts):
    """The whole report, as it is written. `facts` are the machine's."""
    report = {"format": 1,
              "date": datetime.datetime.now(datetime.timezone.utc).strftime(
                  "%Y-%m-%dT%H:%M:%SZ"),
              "quick": options.quick, "machine": facts,
              "source": machine.source(str(ROOT)),
              "build": machine.build(folder), "context": {},
              "failed": {}, "ceilings": {}, "results": []}
    busy = facts["load_before"]
    if busy > 0.3 and not options.quick:
        print(f"others are at work on this machine (load {busy}): the figures "
              "will be of both", file=sys.stderr)
    binaries = [folder / "bench" / path for path in BINARIES]
    for binary in binaries:
        if not binary.exists():
            sys.exit(f"there is no {binary}; build the target `benchmarks`")
    for binary in binaries:
        print(binary.name, file=sys.stderr)
        try:
            collect(binary, options, report)
        except Failed as fault:
            print(f"{binary.name} {fault}", file=sys.stderr)
            report["failed"][binary.name] = str(fault).splitlines()[0]
    report["ceilings"] = ceilings(report["results"])
    return report


def name_of(report, options):
    """A result's file: of a day, a kind of machine, a backend, a commit."""
    source = report["source"]
    parts = [report["date"][:10], machine.slug(report["machine"]),
             options.backend, source["commit"]]
    parts += [word for word, holds in (
        ("dirty", source["dirty"]), ("quick", options.quick),
        ("part", options.filter or report["failed"])) if holds]
    return "-".join(filter(None, parts))


def title_of(report, options):
    """What the chart says of itself."""
    facts = report["machine"]
    return (f"{'QUICK RUN, NO FIGURES: ' if options.quick else ''}"
            f"{facts['cpu']}, {facts['cores']} cores, {options.backend}, "
            f"commit {report['source']['commit']}, {report['date'][:10]}")


def write(report, options):
    """Writes both files; returns their common path without its end."""
    path = options.out / name_of(report, options)
    path.with_suffix(".json").write_text(
        json.dumps(report, indent=1) + "\n", encoding="utf-8")
    path.with_suffix(".svg").write_text(
        chart(title_of(report, options), report["results"]), encoding="utf-8")
    return path


def main(arguments):
    options = parse(arguments)
    make_room(options.out)
    facts = machine.machine()  # Before a build adds to the load.
    report = measure(options, options.build or build("benchmarks"), facts)
    failures = [f"{name} {end}" for name, end in report["failed"].items()]
    if not report["results"]:
        sys.exit("; ".join(failures) or f"no case matches {options.filter}")
    path = write(report, options)
    print(table(report["results"]))
    if report["ceilings"]:
        print("\nceilings: " + ", ".join(
            f"{kind} {number(rate, 'FLOP/s' if kind == 'sgemm' else 'B/s')}"
            for kind, rate in report["ceilings"].items()))
    if options.quick:
        print("\na quick run: these are no figures")
    print(f"\nwritten: {path}.json, {path}.svg")
    for failure in failures:
        print(f"NOT ALL: {failure}")
    failed = failures or any("error" in r for r in report["results"])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
