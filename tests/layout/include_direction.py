#!/usr/bin/env python3
"""Checks that includes point one way: server -> kernels, proto; client ->
kernels, proto; proto/wire -> itself; kernels -> itself. Prints each include
that does not, and exits 1.

usage: include_direction.py ROOT
"""
import pathlib
import re
import sys

# What each folder may include of the project. Generated code is `rowhouse/v1`,
# public client headers `rowhouse/*.h`.
ALLOWED = {
    "kernels": ("kernels/",),
    "proto/wire": ("proto/wire/", "rowhouse/v1/"),
    "server": ("server/", "kernels/", "proto/wire/", "rowhouse/v1/",
               "rowhouse/config/v1/"),
    "server/shard": ("server/shard/", "kernels/", "proto/wire/error.h",
                     "proto/wire/placement.h", "proto/wire/reasons.h",
                     "proto/wire/status_macros.h"),
    "server/checkpoint": ("server/checkpoint/", "proto/wire/error.h",
                          "proto/wire/reasons.h", "proto/wire/status_macros.h"),
    "client/include": ("rowhouse/",),
    "client/internal": ("client/internal/", "rowhouse/", "kernels/",
                        "proto/wire/"),
    "client/svg": ("client/svg/",),
    "client/cli": ("client/cli/", "client/internal/", "client/push_log/",
                   "client/svg/", "rowhouse/", "kernels/", "proto/wire/"),
    "client/examples": ("rowhouse/", "client/examples/", "client/svg/"),
}
PROJECT = ("kernels/", "proto/", "server/", "client/", "tests/", "bench/",
           "rowhouse/")
# Libraries that a folder must not know.
FORBIDDEN = {
    "kernels": ("grpc", "google/"),
    "server/shard": ("grpc", "google/", "tbb/", "oneapi/"),
    "server/checkpoint": ("grpc", "google/", "tbb/", "oneapi/"),
    "client/include": ("grpc", "google/", "rowhouse/v1/", "rowhouse/config/"),
}
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]')


def rule_of(path):
    """The longest folder with a rule that holds `path`."""
    folders = [f for f in ALLOWED if path.startswith(f + "/")]
    return max(folders, key=len) if folders else None


def faults_of(path, text):
    folder = rule_of(path)
    for number, line in enumerate(text.splitlines(), 1):
        found = INCLUDE.match(line)
        if not found or folder is None:
            continue
        name = found.group(1)
        inside = name.startswith(PROJECT)
        if inside and not name.startswith(ALLOWED[folder]):
            yield f"{path}:{number}: {folder} may not include {name}"
        elif name.startswith(FORBIDDEN.get(folder, ())):
            yield f"{path}:{number}: {folder} may not know {name}"


def self_test():
    bad = [("kernels/a.cc", '#include "proto/wire/status.h"'),
           ("kernels/a.cc", "#include <grpcpp/grpcpp.h>"),
           ("server/shard/a.cc", '#include "server/service/x.h"'),
           ("client/internal/a.cc", '#include "server/shard/shard.h"'),
           ("client/include/rowhouse/a.h", '#include "rowhouse/v1/table.pb.h"')]
    good = [("server/main.cc", '#include "kernels/backend.h"'),
            ("kernels/a.cc", "#include <vector>")]
    assert all(list(faults_of(*case)) for case in bad)
    assert not any(list(faults_of(*case)) for case in good)


def main():
    self_test()
    root = pathlib.Path(sys.argv[1])
    files = [p for top in ("kernels", "proto", "server", "client")
             for p in sorted((root / top).rglob("*"))
             if p.suffix in (".h", ".cc", ".cu", ".cuh")]
    faults = [fault for p in files
              for fault in faults_of(str(p.relative_to(root)), p.read_text())]
    print("\n".join(faults) or f"{len(files)} files point one way")
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
