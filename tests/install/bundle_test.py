"""The bundle of a build folder: its size, what it needs of a machine, and that
its programs run where nothing of ours is to be found.

  python3 bundle_test.py BUILD
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else "build/bundle")
BUNDLE = BUILD / "bundle"
SOURCE = pathlib.Path(__file__).resolve().parents[2]

MOST_BYTES = 48_000_000
PROGRAMS = {"rowhouse", "rowhouse-server", "rowhouse_gpu_bench",
            "rowhouse_gpu_tests", "rowhouse_ngram_lm"}
# Of glibc, which every such machine has, and of the CUDA toolkit.
OF_THE_MACHINE = re.compile(
    r"ld-linux-x86-64\.so\.2|lib(c|m|rt|dl|pthread)\.so\.[0-9]+"
    r"|libcublasLt\.so\.[0-9]+")
NEWEST_GLIBC = (2, 36)


def output(*command):
    return subprocess.run(command, capture_output=True, text=True,
                          check=True).stdout


def binaries():
    yield from sorted((BUNDLE / "bin").iterdir())
    yield from sorted(path for path in (BUNDLE / "lib").iterdir()
                      if not path.is_symlink())


class FilesTest(unittest.TestCase):
    def test_the_archive_is_small_enough_to_carry(self):
        size = (BUILD / "rowhouse-bundle.tar.xz").stat().st_size
        self.assertLess(size, MOST_BYTES)

    def test_it_has_the_programs_and_the_golden_data(self):
        self.assertEqual({path.name for path in (BUNDLE / "bin").iterdir()},
                         PROGRAMS)
        self.assertEqual(len(list((BUNDLE / "tests/golden").iterdir())),
                         len(list((SOURCE / "tests/golden").iterdir())))
        self.assertNotEqual((BUNDLE / "COMMIT").read_text().strip(), "")

    def test_every_library_comes_along_or_is_the_machines(self):
        ours = {path.name for path in (BUNDLE / "lib").iterdir()}
        for path in binaries():
            needed = re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-d", path))
            for name in needed:
                self.assertTrue(name in ours or OF_THE_MACHINE.fullmatch(name),
                                f"{path.name} needs {name}")

    def test_the_glibc_of_debian_12_is_new_enough(self):
        for path in binaries():
            found = re.findall(r"GLIBC_([0-9]+)\.([0-9]+)",
                               output("readelf", "-V", path))
            newest = max((int(a), int(b)) for a, b in found)
            self.assertLessEqual(newest, NEWEST_GLIBC, path.name)

    def test_programs_are_stripped_and_name_no_folder_of_the_build(self):
        for path in (BUNDLE / "bin").iterdir():
            self.assertNotIn(".symtab", output("readelf", "-SW", path))
            self.assertEqual(path.read_bytes().count(os.fsencode(SOURCE)), 0,
                             path.name)
            runpath = re.findall(r"R(?:UN)?PATH.*\[(.*)\]",
                                 output("readelf", "-d", path))
            self.assertEqual(runpath, ["$ORIGIN/../lib:/usr/local/cuda/lib64"],
                             path.name)


class ProgramsTest(unittest.TestCase):
    def start(self, program, *arguments, code=0, **environment):
        ended = subprocess.run(
            [BUNDLE.resolve() / "bin" / program, *arguments], env=environment,
            cwd="/", capture_output=True, text=True, check=False)
        self.assertEqual(ended.returncode, code, ended.stdout + ended.stderr)
        return ended.stdout + ended.stderr

    def test_server_and_tool_tell_their_version(self):
        self.assertIn("rowhouse-server", self.start("rowhouse-server", "--version"))
        self.start("rowhouse", "--version")

    def test_the_demo_tells_its_flags(self):
        self.assertIn("--backend", self.start("rowhouse_ngram_lm", "--help", code=1))

    def test_the_tests_that_need_no_gpu_pass(self):
        said = self.start("rowhouse_gpu_tests",
                          "--gtest_filter=*Rows*/cpu:*Log*/cpu:*Memory*/cpu")
        self.assertIn("[  PASSED  ]", said)

    def test_a_gpu_that_is_required_and_not_there_is_a_failure(self):
        if pathlib.Path("/dev/nvidiactl").exists():
            self.skipTest("there is a GPU")
        said = self.start("rowhouse_gpu_tests",
                          "--gtest_filter=Cuda/BackendTest.*Digest*", code=1,
                          ROWHOUSE_REQUIRE_GPU="1")
        self.assertIn("there is no CUDA device", said)

    def test_cycles_run_on_the_cpu(self):
        with tempfile.TemporaryDirectory() as out:
            ended = subprocess.run(
                [BUNDLE / "bench/cycle.sh", "--quick", f"--out={out}"],
                capture_output=True, text=True, check=False)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertEqual(len(list(pathlib.Path(out).glob("*.svg"))), 1)

    def test_the_benchmarks_run_on_the_cpu(self):
        said = self.start("rowhouse_gpu_bench", "--backend=cpu", "--quick",
                          "--benchmark_filter=^GatherRows",
                          "--benchmark_min_time=0.001")
        self.assertIn("GatherRows", said)


if __name__ == "__main__":
    unittest.main()
