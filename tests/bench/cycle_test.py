"""Cycles over every transport: the picture and the table, from reports that are
written down here, and a tiny run of the real programs.

usage: cycle_test.py ROWHOUSE SERVER [UNITTEST_ARGUMENT ...]
"""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
import unittest.mock
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/report"))

import cycle  # noqa: E402

ROWHOUSE = SERVER = None  # Set below.


def report(transport, prefetch, stages):
    return {"transport": transport, "prefetch": prefetch,
            "cycle_p50_seconds": 0.25, "tokens_per_second": 786432.0,
            "work_share": 0.5, "pull": {"share_behind_work": 0.125},
            "stages": [{"stage": name, "p50_seconds": seconds}
                       for name, seconds in stages.items()]}


class SummaryTest(unittest.TestCase):
    def test_stages_stand_below_each_other_and_runs_side_by_side(self):
        text = cycle.summary([
            report("TCP", False, {"ids sent": 0.004, "push": 0.1}),
            report("one-sided", True, {"push": 0.05, "model": 0.02})])
        self.assertEqual(text.splitlines(), [
            "ms of a cycle       TCP, late  one-sided, ahead",
            "ids sent            4",
            "push                100        50",
            "model                          20",
            "cycle               250        250",
            "tokens/s            7.86e+05   7.86e+05",
            "trainer at work     50%        50%",
            "travel behind work  12%        12%"])

    def test_pictures_stand_below_each_other(self):
        one = '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="{}">' \
            '<rect/></svg>\n'
        root = xml.etree.ElementTree.fromstring(
            cycle.stacked([one.format(20), one.format(30)]))
        self.assertEqual((root.get("width"), root.get("height")), ("10", "50"))
        self.assertEqual([part.get("y") for part in root], ["0", "20"])


class OptionsTest(unittest.TestCase):
    def test_sizes_are_the_full_ones_unless_quick_or_given(self):
        self.assertEqual(cycle.parse([]).tokens, 49152)
        self.assertEqual(cycle.parse([]).out, ROOT / "bench/results")
        quick = cycle.parse(["--quick", "--tokens=7"])
        self.assertEqual((quick.tokens, quick.dim), (7, 16))
        self.assertEqual(quick.out, ROOT / "build/bench")


class SourceTest(unittest.TestCase):
    def test_a_bundle_names_its_commit(self):
        with tempfile.TemporaryDirectory() as name, \
                unittest.mock.patch.object(cycle, "ROOT", pathlib.Path(name)):
            file = pathlib.Path(name) / "COMMIT"
            file.write_text("abc123-dirty\n", encoding="utf-8")
            self.assertEqual(cycle.source(), {"commit": "abc123", "dirty": True})
            file.write_text("abc123\n", encoding="utf-8")
            self.assertEqual(cycle.source(),
                             {"commit": "abc123", "dirty": False})


class RunTest(unittest.TestCase):
    def test_every_transport_is_taken_and_drawn(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "rowhouse").symlink_to(ROWHOUSE)
            (folder / "rowhouse-server").symlink_to(SERVER)
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                code = cycle.main(["--quick", "--servers=2", "--spans",
                                   f"--bin={folder}", f"--out={folder}/out"])
            self.assertEqual(code, 0)
            self.assertIn("travel behind work", said.getvalue())
            (path,) = (folder / "out").glob("*-cycle.json")
            written = json.loads(path.read_text(encoding="utf-8"))
            picture = xml.etree.ElementTree.parse(path.with_suffix(".svg"))
            spans = json.loads((folder / "out/one-sided-ahead.json").read_text(
                encoding="utf-8"))
        self.assertEqual(
            [(run["transport"], run["prefetch"]) for run in written["runs"]],
            [(transport, prefetch)
             for transport in ("TCP", "Unix socket", "one-sided")
             for prefetch in (False, True)])
        self.assertEqual(len(picture.getroot()), 6)
        text = "".join(picture.getroot().itertext())
        self.assertIn("one-sided, ids sent in the cycle before", text)
        self.assertNotIn("trace", written["runs"][0])
        self.assertTrue(spans["trace"]["trainers"][0]["spans"])
        self.assertNotIn(name, json.dumps(written))


if __name__ == "__main__":
    ROWHOUSE, SERVER = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
