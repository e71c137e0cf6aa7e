"""Saves and loads a table, beside a plain writer and reader of the same bytes, and
times calls while a checkpoint is being written.

See bench/checkpoint.sh and bench/README.md. Needs nothing but the tool and the
server: in a bundle it runs beside them.
"""
import argparse
import contextlib
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import cycle
import machine
import run as runner
from table import aligned

QUICK = {"rows": 4096, "dim": 16, "batch": 256, "seconds": 1.0, "repeats": 1}
DEFAULTS = {"rows": 1_000_000, "dim": 768, "batch": 8192, "seconds": 20.0,
            "repeats": 3}
BLOCK = 8 << 20
TABLE = "checkpointed"


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="bench/checkpoint.sh", description="Saves and loads a table beside "
        "a plain writer and reader, and times calls while it is saved.")
    at_least = runner.at_least
    cycle.add_flags(parser)
    parser.add_argument("--disk", type=pathlib.Path, metavar="DIR",
                        help="where checkpoints go (a temporary directory)")
    parser.add_argument("--rows", type=at_least(1), metavar="N",
                        help="of the table (1000000)")
    parser.add_argument("--dim", type=at_least(1), metavar="N",
                        help="bf16 elements of a row (768)")
    parser.add_argument("--batch", type=at_least(1), metavar="N",
                        help="rows of a call (8192)")
    parser.add_argument("--seconds", type=float, metavar="S",
                        help="for which calls are timed (20)")
    parser.add_argument("--repeats", type=at_least(1), metavar="N",
                        help="of saving and loading (3)")
    parser.add_argument("--buffer-bytes", type=at_least(0), default=0,
                        metavar="N", help="of the server's checkpoint config")
    options = parser.parse_args(arguments)
    return cycle.take_defaults(options, QUICK if options.quick else DEFAULTS)


@contextlib.contextmanager
def server(binary, options, folder, disk):
    """A server with checkpoints in `disk`; its address."""
    process, address = cycle.start_server(
        binary, folder / "server.textproto",
        f'cluster_id: "checkpoint" server_count: 1 backend: "{options.backend}" '
        f'device_index: {options.device} checkpoint {{ directory: "{disk}" '
        f'buffer_bytes: {options.buffer_bytes} }}\n')
    try:
        yield address
    finally:
        cycle.end_servers([process])


class Tool:
    def __init__(self, binary, address):
        self.command = [binary, f"--servers={address}", "--timeout=600",
                        "--json", "--quiet"]

    def start(self, *arguments):
        return subprocess.Popen([*self.command, *arguments], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    @staticmethod
    def end(process):
        output, faults = process.communicate()
        if process.returncode != 0:
            sys.exit(f"{' '.join(map(str, process.args))} ended with code "
                     f"{process.returncode}\n{faults}")
        return json.loads(output) if output.strip() else None

    def run(self, *arguments):
        return self.end(self.start(*arguments))

    def timed(self, *arguments):
        start = time.perf_counter()
        self.run(*arguments)
        return time.perf_counter() - start


def forget(path):
    """Drops a file, or all files below a folder, from memory: they are read from
    the disk next."""
    files = [path] if path.is_file() else [p for p in path.rglob("*")
                                           if p.is_file()]
    for file in files:
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def plain_write(path, size):
    """Seconds to write so many bytes and have them on the disk."""
    block = os.urandom(BLOCK)
    start = time.perf_counter()
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    for at in range(0, size, BLOCK):
        part = memoryview(block)[:min(BLOCK, size - at)]
        while part:
            part = part[os.write(descriptor, part):]
    os.fsync(descriptor)
    os.close(descriptor)
    return time.perf_counter() - start


def plain_read(path):
    """Seconds to read a file, which is not in memory."""
    forget(path)
    buffer = bytearray(BLOCK)
    start = time.perf_counter()
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
    return time.perf_counter() - start


def save_and_load(tool, options, disk):
    """Seconds of each, in turns."""
    tool.run("create", TABLE, f"--rows={options.rows}", f"--dim={options.dim}",
             "--uniform=0.1", "--seed=1", "--shards=1", "--reduction=sum",
             "--max-rows=1")
    size = options.rows * (2 * options.dim + 8)
    seconds = {name: [] for name in ("plain write", "save", "plain read",
                                     "verify", "load")}
    plain = disk / "plain"
    for _ in range(options.repeats):
        seconds["plain write"].append(plain_write(plain, size))
        seconds["save"].append(tool.timed("checkpoint", "create", "c",
                                          f"--tables={TABLE}"))
        seconds["plain read"].append(plain_read(plain))
        forget(disk / "c")
        seconds["verify"].append(tool.timed("checkpoint", "verify", "c"))
        forget(disk / "c")
        seconds["load"].append(tool.timed("checkpoint", "restore", "c",
                                          "--yes"))
        tool.run("checkpoint", "delete", "c", "--yes")
        plain.unlink()
    tool.run("delete", TABLE, "--yes")
    return size, seconds


def event_of(tool, table):
    for found in tool.run("list")["tables"]:
        if found["table"] == table:
            return int(found["event"])
    return None


def loaded(tool, options, saving):
    """What the tool's load reports; with `saving` while checkpoints are written,
    one after another, and their durations and waits."""
    table = "loaded"
    process = tool.start("bench", f"--table={table}", f"--rows={options.rows}",
                         f"--dim={options.dim}", f"--batch={options.batch}",
                         f"--seconds={options.seconds}")
    saved, ahead = [], 20
    deadline = time.perf_counter() + options.seconds
    while saving and process.poll() is None and time.perf_counter() < deadline:
        event = event_of(tool, table)
        if not event:
            continue
        start = time.perf_counter()
        create = tool.start("checkpoint", "create", "c",
                            f"--tables={table}@{event + ahead}")
        output, faults = create.communicate()
        if create.returncode != 0:
            # Either events were faster, or the load has ended.
            if "last applied event" not in faults and process.poll() is None:
                time.sleep(0.2)
                if process.poll() is None:
                    sys.exit(faults)
            ahead *= 2
            continue
        saved.append(json.loads(output) | {
            "seconds": time.perf_counter() - start})
        tool.run("checkpoint", "delete", "c", "--yes")
    return tool.end(process), saved


def rows_of(size, seconds, quiet, busy):
    medians = {name: statistics.median(all_) for name, all_ in seconds.items()}
    rows = [["", "s", "GB/s", "of plain"]]
    for name, median in medians.items():
        plain = medians["plain write" if name in ("plain write", "save")
                        else "plain read"]
        rows.append([name, f"{median:.3g}", f"{size / median / 1e9:.3g}",
                     f"{plain / median:.2f}"])
    calls = [["ms", "p50", "saving", "p99", "saving"]]
    for operation in ("pull", "push", "event"):
        calls.append([operation] + [
            f"{1e3 * report[operation][quantile]:.3g}"
            for quantile in ("p50_seconds", "p99_seconds")
            for report in (quiet, busy)])
    return rows, calls


def main(arguments):
    options = parse(arguments)
    runner.make_room(options.out)
    facts = machine.machine()  # Before a build adds to the load.
    tool_path, server_path = cycle.programs(options)
    with tempfile.TemporaryDirectory(dir=options.disk) as name:
        folder = pathlib.Path(name)
        disk = folder / "checkpoints"
        disk.mkdir()
        with server(server_path, options, folder, disk) as address:
            tool = Tool(tool_path, address)
            size, seconds = save_and_load(tool, options, disk)
            print(json.dumps(seconds), file=sys.stderr, flush=True)
            quiet, _ = loaded(tool, options, saving=False)
            busy, saved = loaded(tool, options, saving=True)
    report = {"format": 1,
              "date": datetime.datetime.now(datetime.timezone.utc).strftime(
                  "%Y-%m-%dT%H:%M:%SZ"),
              "quick": options.quick, "machine": facts, "failed": {},
              "source": cycle.source(), "backend": options.backend,
              "rows": options.rows, "dim": options.dim, "batch": options.batch,
              "buffer_bytes": options.buffer_bytes, "size_bytes": size,
              "seconds": seconds, "load_without": quiet, "load_with": busy,
              "saved": saved}
    path = options.out / (runner.name_of(report, options) + "-checkpoint.json")
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    for rows in rows_of(size, seconds, quiet, busy):
        print(aligned(rows) + "\n")
    print(f"{len(saved)} checkpoints while calls were timed; {path}")


if __name__ == "__main__":
    main(sys.argv[1:])
