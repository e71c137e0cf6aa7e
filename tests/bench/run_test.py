"""The runner of the benchmarks, with programs that end as they are told."""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/report"))

import machine  # noqa: E402
import run as runner  # noqa: E402

NOTHING = "echo 'Failed to match any benchmarks against regex: x' >&2; exit 1"
NO_CUDA = "echo 'UNIMPLEMENTED: no CUDA backend' >&2; exit 2"
DIES = "echo 'out of memory' >&2; kill -ABRT $$"
# $out is the file that was asked for.
PROGRAM = """#!/bin/sh
out=
for flag; do
  case $flag in
    --benchmark_list_tests=true) {listing}; exit 0;;
    --benchmark_out=*) out=${{flag#*=}};;
  esac
done
{running}
"""


def measured(name, code=0, **fields):
    """Shell that writes one case's result."""
    case = {"name": name, "run_name": name, "real_time": 1.0,
            "time_unit": "ms", **fields}
    output = json.dumps({"context": {}, "benchmarks": [case]})
    return f"echo '{output}' > \"$out\"; exit {code}"


class RunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / "deep/results"

    def program(self, path, running, listing="echo case"):
        file = self.folder / "bench" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(PROGRAM.format(listing=listing, running=running),
                        encoding="utf-8")
        file.chmod(0o755)

    def programs(self, kernels, server, listing="echo case"):
        self.program("kernels/kernels_bench", kernels, listing)
        self.program("server/server_bench", server, listing)

    def run_suite(self, *arguments):
        """The code (a text, of a fault of its own), and all that it said."""
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                code = runner.main(["--build", str(self.folder), "--out",
                                    str(self.out), *arguments])
            except SystemExit as end:
                code = end.code
        return code, said.getvalue()

    def report(self):
        (path,) = self.out.glob("*.json")
        return path.name, json.loads(path.read_text(encoding="utf-8"))

    def test_all_that_ends_well_is_written(self):
        self.programs(measured("A"), measured("B"))
        code, said = self.run_suite()
        self.assertEqual(code, 0, said)
        name, report = self.report()
        self.assertEqual([r["name"] for r in report["results"]], ["A", "B"])
        self.assertEqual(report["failed"], {})
        self.assertNotIn("part", name)

    def test_the_results_of_the_other_stay_when_one_dies(self):
        for dead, kernels, server, kept in (
                ("kernels_bench", DIES, measured("B"), "B"),
                ("server_bench", measured("A"), DIES, "A")):
            with self.subTest(dead):
                self.programs(kernels, server)
                self.out = self.folder / dead
                code, said = self.run_suite()
                self.assertEqual(code, 1)
                self.assertIn("out of memory", said)
                self.assertIn(f"NOT ALL: {dead} ended with code -6", said)
                name, report = self.report()
                self.assertEqual([r["name"] for r in report["results"]], [kept])
                self.assertEqual(report["failed"],
                                 {dead: "ended with code -6"})
                self.assertIn("part", name)

    def test_an_end_that_belies_its_output_is_a_fault(self):
        self.programs(measured("A", code=3), measured("B"))
        code, said = self.run_suite()
        self.assertEqual(code, 1)
        self.assertIn("kernels_bench ended with code 3", said)
        self.assertEqual([r["name"] for r in self.report()[1]["results"]],
                         ["A", "B"])

    def test_a_failed_case_is_a_result(self):
        self.programs(measured("A", code=1, error_occurred=True,
                               error_message="no memory"), measured("B"))
        code, said = self.run_suite()
        self.assertEqual(code, 1)
        self.assertEqual(self.report()[1]["failed"], {})
        self.assertRegex(said, "A +FAILED +no memory")

    def test_a_filter_may_leave_one_binary_nothing(self):
        self.program("kernels/kernels_bench", "exit 9", NOTHING)
        self.program("server/server_bench", measured("B"))
        code, said = self.run_suite("B")
        self.assertEqual(code, 0, said)

    def test_a_filter_that_finds_nothing_is_told_from_a_fault(self):
        self.programs("exit 9", "exit 9", NOTHING)
        self.assertEqual(self.run_suite("x")[0], "no case matches x")
        self.programs("exit 9", "exit 9", NO_CUDA)
        code, said = self.run_suite("x")
        self.assertIn("kernels_bench ended with code 2", code)
        self.assertIn("UNIMPLEMENTED: no CUDA backend", said)

    def test_numbers_that_no_run_can_have_are_refused(self):
        for flags in (["--repetitions", "0"], ["--repetitions", "-3"],
                      ["--threads", "-1"], ["--device", "-1"],
                      ["--threads", "many"]):
            with self.subTest(flags):
                code, said = self.run_suite(*flags)
                self.assertEqual(code, 2)
                self.assertIn(f"argument {flags[0]}", said)

    def test_a_folder_that_cannot_be_written_is_found_before_the_work(self):
        self.programs("touch \"$0.ran\"", "exit 9")
        self.out.parent.mkdir()
        self.out.write_text("in the way", encoding="utf-8")
        self.assertRegex(self.run_suite()[0], "^cannot write to .*results: ")
        self.assertEqual(list(self.folder.glob("**/*.ran")), [])

    def test_the_load_is_that_before_the_build(self):
        with unittest.mock.patch.object(runner, "build", side_effect=OSError), \
                unittest.mock.patch.object(machine, "machine") as facts, \
                self.assertRaises(OSError):
            runner.main(["--out", str(self.out)])
        facts.assert_called_once_with()


class NameTest(unittest.TestCase):
    def name(self, *arguments, commit="abc1234", dirty=False, failed=()):
        report = {"date": "2026-11-30T09:00:00Z", "failed": failed,
                  "machine": {"cpu": "Some CPU", "cores": 2},
                  "source": {"commit": commit, "dirty": dirty}}
        options = runner.parse(list(arguments))
        return (runner.name_of(report, options),
                runner.title_of(report, options))

    def test_a_file_is_of_a_day_a_machine_a_backend_and_a_commit(self):
        self.assertEqual(self.name()[0],
                         "2026-11-30-some-2-cores-cpu-abc1234")
        self.assertEqual(self.name("--backend", "cuda", commit="")[0],
                         "2026-11-30-some-2-cores-cuda")

    def test_what_is_no_whole_run_of_a_commit_takes_no_such_runs_place(self):
        names = [self.name()[0], self.name(dirty=True)[0],
                 self.name("--quick")[0], self.name("Gather")[0]]
        self.assertEqual(len(set(names)), 4)
        self.assertEqual(self.name(failed={"server_bench": "ended"})[0],
                         self.name("Gather")[0])

    def test_a_quick_chart_says_so(self):
        self.assertRegex(self.name("--quick")[1], "^QUICK RUN, NO FIGURES: Some")
        self.assertRegex(self.name()[1], "^Some CPU, 2 cores, cpu, commit abc")


if __name__ == "__main__":
    unittest.main()
