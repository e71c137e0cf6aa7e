"""bench/checkpoint.sh at tiny sizes, with a real server.

usage: checkpoint_test.py ROWHOUSE SERVER [UNITTEST_ARGUMENT ...]
"""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/report"))
import checkpoint  # noqa: E402


class FilesTest(unittest.TestCase):
    def test_a_plain_writer_writes_every_byte(self):
        with tempfile.TemporaryDirectory() as name:
            path = pathlib.Path(name) / "plain"
            size = checkpoint.BLOCK + 5
            self.assertGreater(checkpoint.plain_write(path, size), 0)
            self.assertEqual(path.stat().st_size, size)
            self.assertGreater(checkpoint.plain_read(path), 0)


class RunTest(unittest.TestCase):
    def test_saving_and_loading_are_timed_beside_plain_files(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "rowhouse").symlink_to(ROWHOUSE)
            (folder / "rowhouse-server").symlink_to(SERVER)
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                checkpoint.main(["--quick", "--seconds=4", f"--bin={folder}",
                                 f"--out={folder}/out", f"--disk={folder}"])
            (path,) = (folder / "out").glob("*-checkpoint.json")
            written = json.loads(path.read_text(encoding="utf-8"))
        self.assertEqual(written["size_bytes"], 4096 * (2 * 16 + 8))
        self.assertEqual(set(written["seconds"]),
                         {"plain write", "save", "plain read", "verify",
                          "load"})
        self.assertTrue(written["saved"])
        for one in written["saved"]:
            self.assertGreaterEqual(one["event_wait_seconds"], 0)
        for load in ("load_without", "load_with"):
            self.assertGreater(written[load]["event"]["p99_seconds"], 0)
        self.assertIn("of plain", said.getvalue())


if __name__ == "__main__":
    ROWHOUSE, SERVER = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
