"""The report of the benchmarks, from output that is written down here."""
import json
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/report"))

import chart  # noqa: E402
import machine  # noqa: E402
import results  # noqa: E402
import run as runner  # noqa: E402
import table  # noqa: E402


def run(name, time, **counters):
    return {"name": name, "run_name": name, "run_type": "iteration",
            "iterations": 3, "real_time": time, "cpu_time": 1.0,
            "time_unit": "ms", **counters}


GATHER = [run("Gather/dim:8/real_time", time, bytes=4e6, bytes_per_second=rate,
              ceiling=1e9, of_ceiling=rate / 1e9)
          for time, rate in ((8.0, 5e8), (5.0, 8e8), (10.0, 4e8))]
OUTPUT = {
    "context": {"host_name": "secret", "executable": "/secret/bench",
                "backend": "cpu, portable code, 2 threads"},
    "benchmarks": GATHER + [
        {**run("Gather/dim:8/real_time", 7.0), "run_type": "aggregate"},
        run("Wait", 2e6, p50_us=12.0, p99_us=40.0, of_ceiling=0.25,
            time_unit="ns"),
        run("Broken", 0.0, error_occurred=True, error_message="no memory")]}


class ResultsTest(unittest.TestCase):
    def setUp(self):
        self.gather, self.wait, self.broken = results.summarize(
            OUTPUT, {"Gather/dim:8": 0.6})

    def test_a_case_is_the_median_of_its_repetitions(self):
        self.assertEqual(self.gather["name"], "Gather/dim:8")
        self.assertEqual(self.gather["repetitions"], 3)
        self.assertEqual(self.gather["time_ms"],
                         {"median": 8.0, "min": 5.0, "max": 10.0})
        self.assertEqual(self.gather["of_ceiling"],
                         {"median": 0.5, "min": 0.4, "max": 0.8})
        self.assertEqual(self.gather["bytes_per_second"], 5e8)

    def test_times_of_every_unit_become_milliseconds(self):
        self.assertEqual(self.wait["time_ms"]["median"], 2.0)

    def test_a_failed_case_keeps_its_fault(self):
        self.assertEqual(self.broken,
                         {"name": "Broken", "error": "no memory"})

    def test_only_cases_with_a_goal_have_one(self):
        self.assertEqual(self.gather["bar"], 0.6)
        self.assertNotIn("bar", self.wait)

    def test_the_context_keeps_neither_host_nor_path(self):
        self.assertEqual(results.context(OUTPUT),
                         {"backend": "cpu, portable code, 2 threads"})

    def test_a_share_is_of_the_ceiling_that_the_work_has(self):
        share = {"of_ceiling": {}, "binary": "kernels_bench"}
        self.assertEqual(results.ceiling_of(share), "copy")
        self.assertEqual(results.ceiling_of({**share, "flops": 1}), "sgemm")
        self.assertEqual(
            results.ceiling_of({**share, "binary": "server_bench"}), "tcp")
        self.assertIsNone(results.ceiling_of({"binary": "kernels_bench"}))

    def test_the_ceilings_are_medians_of_each_kind(self):
        cases = [{"of_ceiling": {}, "binary": "kernels_bench", "ceiling": c}
                 for c in (1.0, 9.0, 2.0)]
        cases.append({**cases[0], "flops": 1, "ceiling": 5.0})
        self.assertEqual(results.ceilings(cases + [self.wait]),
                         {"copy": 2.0, "sgemm": 5.0})

    def test_the_table_marks_a_share_below_its_goal(self):
        lines = table.table([self.gather, self.wait, self.broken]).splitlines()
        self.assertRegex(lines[1], r"^Gather/dim:8 +8 ms +500 MB/s +"
                                   r"0.50 \(0.40-0.80\) BELOW 0.60$")
        self.assertRegex(lines[2], "p50 12 us, p99 40 us +0.25")
        self.assertRegex(lines[3], "^Broken +FAILED +no memory$")

    def test_a_bar_is_as_long_as_the_share_and_ends_at_one(self):
        half, full = (
            {"name": n, "binary": "kernels_bench",
             "of_ceiling": {"median": m, "min": m, "max": m}}
            for n, m in (("a<b", 0.5), ("b", 1.7)))
        drawn = chart.chart("title", [half, self.broken, full])
        self.assertEqual(drawn.count('height="13.0" fill="#4477aa"'), 2)
        self.assertIn('width="210.0" height="13.0"', drawn)
        self.assertIn('width="420.0" height="13.0"', drawn)
        self.assertIn("a&lt;b", drawn)
        self.assertNotIn("Broken", drawn)


class MachineTest(unittest.TestCase):
    def test_a_file_is_named_after_the_kind_of_machine(self):
        for cpu, cores, slug in (
                ("Intel(R) Xeon(R) Processor", 2, "intel-xeon-2-cores"),
                ("Intel(R) Core(TM) i7-8700K CPU @ 3.70GHz", 12,
                 "intel-core-i7-8700k-12-cores"),
                ("AMD EPYC 9654 96-Core Processor", 96,
                 "amd-epyc-9654-96-core-96-cores")):
            self.assertEqual(machine.slug({"cpu": cpu, "cores": cores}), slug)

    def test_a_folder_that_is_no_build_has_no_flags(self):
        self.assertEqual(machine.build("/nonexistent")["flags"], "")

    def test_flags_are_those_of_the_kernels_and_without_a_path(self):
        commands = [
            {"file": f"/src/{name}", "command":
                f"ccache c++ -I/src -isystem /usr/x -fprofile-use=/home/x {flag} "
                f"-Wall -std=c++20 -MD -MF a.d -o a.o -c /src/{name}"}
            for name, flag in (("client/a.cc", "-O1"),
                               ("kernels/cpu/b.cc", "-O3 -ffp-contract=off"))]
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "CMakeCache.txt").write_text(
                "CMAKE_HOME_DIRECTORY:INTERNAL=/src\n"
                "CMAKE_BUILD_TYPE:STRING=Release\n", encoding="utf-8")
            (folder / "compile_commands.json").write_text(
                json.dumps(commands), encoding="utf-8")
            built = machine.build(folder)
        self.assertEqual(built["flags"], "-O3 -ffp-contract=off -std=c++20")
        self.assertEqual(built["build_type"], "Release")

    def test_caches_are_those_that_the_kernel_tells(self):
        with tempfile.TemporaryDirectory() as name:
            for i, level, size in ((0, 1, "48K"), (2, 2, "2048K")):
                index = pathlib.Path(name) / f"index{i}"
                index.mkdir()
                (index / "level").write_text(f"{level}\n", encoding="utf-8")
                (index / "size").write_text(f"{size}\n", encoding="utf-8")
            self.assertEqual(machine.caches(name),
                             {"l2_kib": 2048, "l3_kib": None})


class CommandTest(unittest.TestCase):
    def test_only_whole_runs_are_results(self):
        for arguments, folder in (([], "bench/results"),
                                  (["Gather"], "build/bench"),
                                  (["--quick"], "build/bench")):
            self.assertEqual(runner.parse(arguments).out, ROOT / folder)

    def test_a_binary_gets_the_backend_and_the_filter(self):
        options = runner.parse(["--backend", "cuda", "--device", "3", "Row"])
        self.assertEqual(
            runner.command_of("bench", options),
            ["bench", "--backend=cuda", "--device=3", "--threads=0",
             "--benchmark_filter=Row"])

    def test_the_blas_kernels_that_a_user_named_stay(self):
        with unittest.mock.patch.dict("os.environ",
                                      {"OPENBLAS_CORETYPE": "Zen"}):
            self.assertEqual(runner.environment()["OPENBLAS_CORETYPE"], "Zen")


if __name__ == "__main__":
    unittest.main()
