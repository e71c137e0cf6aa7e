"""Runs all benchmarks at tiny sizes, and checks that nothing is left out.

usage: suite_test.py BUILD
"""
import json
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Waited for in every case; or done when a table is made, not when rows move.
# Or the small rest of an event, and of `OneSidedGather`.
WITHOUT_A_CASE = {"Synchronize", "SetAside", "ReserveScratch",
                  "AllocateUninitialized", "AllocateHost",
                  "AllocateShared", "Map", "StoreEpoch", "LoadEpoch"}
OVER_LOOPBACK = {
    "PullRows/batch:8192", "PullRows/batch:0", "PullRowsFromSocket/batch:0",
    "PullLatency/rows:1", "PullLatency/rows:64", "EmptyPull",
    "EmptyPullFromSocket", "ClientsAtOnce/clients:64/iterations:1",
    "PushGradients", "PushGradientsToSocket", "ApplyEvent/trainers:1",
    "ApplyEvent/trainers:2", "OneSidedGather", "OneSidedPull",
    "OneSidedPullPrepared", "PeerGather", "LinkPull", "LinkPush",
    "LossOverSlices/slices:1", "LossOverSlices/slices:2"}
OVER_LOOPBACK |= {
    f"{case}/{way}" for case in (
        "LinearCrossEntropy", "HiddenGradientAnswered", "LossBesideClientWork")
    for way in ("one_sided:0/on_device:0", "one_sided:1/on_device:0",
                "one_sided:1/on_device:1")}


def operations(header):
    """What the interface `Backend` can do, from its text."""
    return set(re.findall(
        r"virtual absl::Status(?:Or<Buffer>)? (\w+)\(", header))


def without_case(header, names):
    """Operations that no case is named for."""
    return operations(header) - {name.split("/")[0] for name in names} - \
        WITHOUT_A_CASE


class SuiteTest(unittest.TestCase):
    build = ""

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                ["bash", ROOT / "bench/run.sh", "--quick", "--out", folder,
                 "--build", cls.build], check=False, text=True,
                stdout=subprocess.PIPE)
            if done.returncode != 0:
                raise RuntimeError(done.stdout)
            (path,) = pathlib.Path(folder).glob("*.json")
            cls.text = path.read_text(encoding="utf-8")
            cls.chart = path.with_suffix(".svg").read_text(encoding="utf-8")
        cls.report = json.loads(cls.text)
        cls.results = {r["name"]: r for r in cls.report["results"]}

    def test_every_operation_of_a_backend_has_a_case(self):
        header = (ROOT / "kernels/backend.h").read_text(encoding="utf-8")
        self.assertGreaterEqual(len(operations(header)), 25)
        self.assertEqual(without_case(header, self.results), set())

    def test_an_operation_without_a_case_is_found(self):
        header = ("virtual absl::Status Gather(int x) = 0;\n"
                  "virtual absl::StatusOr<Buffer> Allocate(\n"
                  "virtual absl::Status Synchronize() = 0;\n")
        self.assertEqual(without_case(header, ["Gather/dim:3"]), {"Allocate"})

    def test_all_goes_over_loopback_too(self):
        self.assertLessEqual(OVER_LOOPBACK, set(self.results))

    def test_every_case_says_what_it_moves_and_its_share(self):
        for name, result in self.results.items():
            with self.subTest(name):
                self.assertNotIn("error", result)
                self.assertGreater(result["time_ms"]["median"], 0)
                if name == "Allocate":
                    continue
                self.assertGreater(result["of_ceiling"]["median"], 0)
                if not name.startswith(("PullLatency", "EmptyPull")):
                    self.assertGreater(
                        result.get("bytes", result.get("flops", 0)), 0)

    def test_the_file_says_how_and_on_what_it_was_measured(self):
        self.assertTrue(self.report["quick"])
        self.assertGreaterEqual(self.report["machine"]["cores"], 1)
        self.assertGreater(self.report["machine"]["memory_gib"], 0)
        self.assertTrue(self.report["build"]["compiler"])
        self.assertLessEqual(
            {"-ffp-contract=off", "-fno-trapping-math", "-fno-math-errno"},
            set(self.report["build"]["flags"].split()))
        self.assertLessEqual({"l2_kib", "l3_kib"}, set(self.report["machine"]))
        for context in self.report["context"].values():
            self.assertRegex(context["backend"], "^cpu, [a-z0-9]+ code, .")
            self.assertGreaterEqual(int(context["backend_threads"]), 1)

    def test_the_file_names_no_host_and_no_path(self):
        for secret in (str(ROOT), str(pathlib.Path.home()), platform.node()):
            if len(secret) > 4:
                self.assertNotIn(secret, self.text + self.chart)

    def test_a_fault_is_not_taken_for_a_filter_that_finds_nothing(self):
        for arguments, said in ((["("], "Could not compile benchmark re"),
                                (["no_such_case"], "no case matches")):
            with self.subTest(arguments), \
                    tempfile.TemporaryDirectory() as folder:
                done = subprocess.run(
                    ["bash", ROOT / "bench/run.sh", "--quick", "--out", folder,
                     "--build", self.build, *arguments], check=False, text=True,
                    capture_output=True)
                self.assertEqual(done.returncode, 1)
                self.assertIn(said, done.stderr)

    def test_the_chart_has_a_bar_for_every_share(self):
        chart = xml.etree.ElementTree.fromstring(self.chart)
        words = {element.text for element in chart.iter()}
        self.assertTrue(any("QUICK" in (word or "") for word in words))
        self.assertLessEqual(
            {n for n, r in self.results.items() if "of_ceiling" in r}, words)


if __name__ == "__main__":
    SuiteTest.build = sys.argv.pop(1)
    unittest.main()
