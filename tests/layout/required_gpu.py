#!/usr/bin/env python3
"""Checks that a test program skips nothing where a GPU is required: each test
that is skipped without one must fail under ROWHOUSE_REQUIRE_GPU=1. For builds
without CUDA, where every test of a GPU is skipped.

usage: required_gpu.py PROGRAM [FILTER]
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile


def results_of(program, chosen, required):
    """Test names by result: PASSED, FAILED, SKIPPED."""
    environment = {name: value for name, value in os.environ.items()
                   if name != "ROWHOUSE_REQUIRE_GPU"}
    if required:
        environment["ROWHOUSE_REQUIRE_GPU"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "results.json"
        subprocess.run(
            [program, f"--gtest_filter={chosen}", f"--gtest_output=json:{path}"],
            env=environment, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, check=False)
        report = json.loads(path.read_text(encoding="utf-8"))
    results = {}
    for suite in report["testsuites"]:
        for test in suite["testsuite"]:
            result = ("FAILED" if "failures" in test
                      else "PASSED" if test["result"] == "COMPLETED"
                      else test["result"])
            results.setdefault(result, set()).add(
                f"{suite['name']}.{test['name']}")
    return results


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    program, chosen = sys.argv[1], (sys.argv + ["*"])[2]
    skipped = results_of(program, chosen, False).get("SKIPPED", set())
    if not skipped:
        sys.exit(f"{program}: nothing is skipped, wanted some test of a GPU")
    failed = results_of(program, ":".join(skipped), True).get("FAILED", set())
    for name in sorted(skipped - failed):
        print(f"{program}: {name} does not fail where a GPU is required")
    print(f"{len(failed)} of {len(skipped)} skipped tests fail")
    sys.exit(1 if skipped - failed else 0)


if __name__ == "__main__":
    main()
