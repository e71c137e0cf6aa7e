"""Runs whole training cycles over every transport of one machine; writes one
picture and one JSON file.

See bench/cycle.sh and bench/README.md. Needs nothing but the tool and the
server: in a bundle it runs beside them.
"""
import argparse
import contextlib
import datetime
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import machine
import run as runner
from table import aligned

ROOT = pathlib.Path(__file__).resolve().parents[2]
# By name: whether over the socket, and what the tool is told.
TRANSPORTS = {"TCP": (False, ["--no-one-sided"]),
              "Unix socket": (True, ["--no-one-sided"]),
              "one-sided": (True, [])}
LISTENING = "rowhouse-server listening on "
QUICK = {"rows": 4096, "dim": 16, "tokens": 256, "cycles": 2}


def add_flags(parser):
    """What every run of the tool and servers takes."""
    parser.add_argument("--quick", action="store_true",
                        help="tiny sizes: that all run, no figures")
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR",
                        help="where to write (bench/results; quick: build/bench)")
    parser.add_argument("--bin", type=pathlib.Path, metavar="DIR",
                        help="where rowhouse and rowhouse-server are; without "
                        "it the release preset is built first")
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--device", type=runner.at_least(0), default=0,
                        metavar="N", help="of the cuda backend")


def take_defaults(options, defaults):
    """Sizes that were not given, and where to write."""
    for name, value in defaults.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    if options.out is None:
        options.out = ROOT / ("build/bench" if options.quick
                              else "bench/results")
    options.filter = None  # Names of results, as those of run.sh.
    return options


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="bench/cycle.sh", description="Runs whole training cycles over "
        "every transport of this machine; writes one picture and one JSON "
        "file.")
    at_least = runner.at_least
    add_flags(parser)
    parser.add_argument("--spans", action="store_true",
                        help="keeps each run's picture and spans too")
    parser.add_argument("--servers", type=at_least(1), default=1, metavar="N")
    parser.add_argument("--trainers", type=at_least(1), default=1, metavar="N")
    parser.add_argument("--rows", type=at_least(4), metavar="N",
                        help="of the table (2000000)")
    parser.add_argument("--dim", type=at_least(1), metavar="N",
                        help="bf16 elements of a row (768)")
    parser.add_argument("--tokens", type=at_least(1), metavar="N",
                        help="of a trainer's step (49152)")
    parser.add_argument("--cycles", type=at_least(1), metavar="N",
                        help="that are measured, of 4 steps each (10)")
    parser.add_argument("--model-ms", type=float, default=0, metavar="MS",
                        help="what a step's model takes, a wait (0)")
    parser.add_argument("--gpu", type=at_least(0), metavar="N",
                        help="that has the trainers' caches and gradients (the "
                        "host has them)")
    parser.add_argument("--zipf", action="store_true",
                        help="tokens that repeat, so fewer rows")
    options = parser.parse_args(arguments)
    return take_defaults(options, QUICK if options.quick else {
        "rows": 2000000, "dim": 768, "tokens": 49152, "cycles": 10})


def programs(options):
    """The tool and the server."""
    if options.bin is None and (ROOT / "bin").exists():  # A bundle.
        options.bin = ROOT / "bin"
    if options.bin is not None:
        return options.bin / "rowhouse", options.bin / "rowhouse-server"
    folder = runner.build("rowhouse", "rowhouse-server")
    return folder / "client/cli/rowhouse", folder / "server/rowhouse-server"


def start_server(binary, config, text):
    """A server with a configuration, and its address."""
    config.write_text(text, encoding="utf-8")
    process = subprocess.Popen(
        [binary, f"--config={config}", "--listen=127.0.0.1:0",
         "--log_level=warn"], stdout=subprocess.PIPE, text=True,
        env=runner.environment())
    line = process.stdout.readline()
    if not line.startswith(LISTENING):
        sys.exit(f"the server of {config.name} did not start")
    return process, line[len(LISTENING):].strip()


def end_servers(processes):
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait()
        process.stdout.close()


@contextlib.contextmanager
def servers(binary, options, folder):
    """Processes that offer every transport; their addresses, TCP and socket."""
    started, addresses = [], ([], [])
    try:
        for index in range(options.servers):
            socket = f"unix:{folder}/{index}.socket"
            process, address = start_server(
                binary, folder / f"{index}.textproto",
                f'cluster_id: "cycle" server_index: {index} '
                f'server_count: {options.servers} backend: "{options.backend}" '
                f'device_index: {options.device} one_sided {{}} '
                f'more_listen_addresses: "{socket}"\n')
            started.append(process)
            addresses[0].append(address)
            addresses[1].append(socket)
        yield addresses
    finally:
        end_servers(started)


def measure(tool, addresses, options, transport, prefetch, scale, path):
    """One run's report; its picture is at `path`."""
    over_socket, flags = TRANSPORTS[transport]
    command = [tool, "--servers=" + ",".join(addresses[over_socket]),
               "--timeout=300", "--json", "--quiet", "bench", "--cycle",
               f"--rows={options.rows}", f"--dim={options.dim}",
               f"--tokens={options.tokens}", f"--cycles={options.cycles}",
               f"--trainers={options.trainers}",
               f"--model-ms={options.model_ms}", f"--timeline={path}", *flags]
    if options.gpu is not None:
        command.append(f"--gpu={options.gpu}")
    if options.zipf:
        command.append("--zipf")
    if not prefetch:
        command.append("--no-prefetch")
    if scale:
        command.append(f"--timeline-ms={scale * 1e3}")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{transport}: the tool ended with code {done.returncode}\n"
                 f"{done.stderr}")
    report = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    if report["transport"] != transport:
        print(f"rows were to go {transport}, and went {report['transport']}",
              file=sys.stderr)
    return report


def measure_all(tool, server, options, folder):
    """Every run, each with servers of its own, and the paths of their pictures, all of one scale: that of the
    first, which is the slowest."""
    reports, pictures, scale = [], [], None
    for transport in TRANSPORTS:
        for prefetch in (False, True):
            name = re.sub(r"\W+", "-", transport.lower())
            path = folder / f"{name}-{'ahead' if prefetch else 'late'}.svg"
            print(f"  {transport}, ids "
                  f"{'in the cycle before' if prefetch else 'when it begins'}",
                  file=sys.stderr, flush=True)
            with servers(server, options, folder) as addresses:
                reports.append(measure(tool, addresses, options, transport,
                                       prefetch, scale, path))
            scale = scale or reports[0]["timeline_seconds"]
            pictures.append(path)
    return reports, pictures


def stacked(pictures):
    """SVG documents below each other in one."""
    sizes = [re.search(r'width="(\d+)" height="(\d+)"', text).groups()
             for text in pictures]
    width = max(int(w) for w, _ in sizes)
    height = sum(int(h) for _, h in sizes)
    parts, y = [], 0
    for text, (_, size) in zip(pictures, sizes):
        parts.append(text.replace("<svg ", f'<svg y="{y}" ', 1))
        y += int(size)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
            f'height="{height}">\n{"".join(parts)}</svg>\n')


def _milliseconds(seconds):
    return f"{seconds * 1e3:.3g}"


def summary(reports):
    """Stages down, runs across: p50 of a cycle, in milliseconds."""
    stages = list(dict.fromkeys(stage["stage"] for report in reports
                                for stage in report["stages"]))
    rows = [["ms of a cycle"] + [
        f"{report['transport']}, {'ahead' if report['prefetch'] else 'late'}"
        for report in reports]]
    for name in stages:
        found = [{s["stage"]: s for s in report["stages"]}.get(name)
                 for report in reports]
        rows.append([name] + [_milliseconds(s["p50_seconds"]) if s else ""
                              for s in found])
    rows.append(["cycle"] + [_milliseconds(r["cycle_p50_seconds"])
                             for r in reports])
    rows.append(["tokens/s"] + [f"{r['tokens_per_second']:.3g}"
                                for r in reports])
    rows.append(["trainer at work"] + [f"{r['work_share']:.0%}"
                                       for r in reports])
    rows.append(["travel behind work"] + [
        f"{r['pull']['share_behind_work']:.0%}" for r in reports])
    return aligned(rows)


def source():
    """Of this tree, or as a bundle names it."""
    bundled = ROOT / "COMMIT"
    if not bundled.exists():
        return machine.source(str(ROOT))
    commit, dirty, _ = bundled.read_text(encoding="utf-8").strip().partition(
        "-dirty")
    return {"commit": commit, "dirty": bool(dirty)}


def main(arguments):
    options = parse(arguments)
    runner.make_room(options.out)
    facts = machine.machine()  # Before a build adds to the load.
    tool, server = programs(options)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        runs, paths = measure_all(tool, server, options, folder)
        pictures = [path.read_text(encoding="utf-8") for path in paths]
        if options.spans:
            for path in paths:
                for kept in (path, path.with_suffix(".json")):
                    (options.out / kept.name).write_bytes(kept.read_bytes())
    expected = [t for t in TRANSPORTS for _ in range(2)]
    for report in runs:
        del report["trace"]
    report = {"format": 1,
              "date": datetime.datetime.now(datetime.timezone.utc).strftime(
                  "%Y-%m-%dT%H:%M:%SZ"),
              "quick": options.quick, "machine": facts, "source": source(),
              "failed": {}, "runs": runs}
    path = options.out / (runner.name_of(report, options) + "-cycle")
    path.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n",
                                         encoding="utf-8")
    path.with_suffix(".svg").write_text(stacked(pictures), encoding="utf-8")
    print(summary(runs))
    print(f"\nwritten: {path}.json, {path}.svg")
    return 0 if [r["transport"] for r in runs] == expected else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
