"""The comparison with peers, as far as it goes without PyTorch and a GPU."""
import pathlib
import subprocess
import sys
import unittest

PEERS = pathlib.Path(__file__).resolve().parents[2] / "bench/peers"
sys.path.insert(0, str(PEERS))

import compare  # noqa: E402
import lm_head  # noqa: E402
import works  # noqa: E402

GATHER = "CudaGather/rows:84602880"


def run(name, time, ratio, **more):
    return {"run_name": name, "run_type": "iteration", "real_time": time,
            "time_unit": "us", "ratio": ratio, **more}


OUTPUT = {"benchmarks": [
    run(GATHER + "/repeats:3/manual_time", time, time / 280)
    for time in (310.0, 300.0, 290.0)] + [
    run("CudaEmbeddingGradient/spread:1/manual_time", 108.0, 1.35),
    {**run(GATHER + "/manual_time", 1.0, 9.0), "run_type": "aggregate"},
    {"run_name": "Other", "real_time": 1.0, "time_unit": "us"}]}


class CompareTest(unittest.TestCase):
    def setUp(self):
        self.ours = compare.ours(OUTPUT)

    def test_our_times_are_medians_in_milliseconds_by_case(self):
        self.assertEqual(set(self.ours),
                         {GATHER, "CudaEmbeddingGradient/spread:1"})
        self.assertEqual(self.ours[GATHER]["ms"], 0.3)
        self.assertAlmostEqual(self.ours[GATHER]["ratio"], 300 / 280)

    def test_a_peer_stands_beside_our_own_time(self):
        peer = {"name": "torch.index_select", "ms": 0.33, "ratio": 1.15}
        mine, other = list(compare.rows(self.ours, {"gather": [peer]}))[:2]
        self.assertEqual(mine[1:5], ["Rowhouse", "0.300", "1.07", "met (1.08)"])
        self.assertEqual(other[1:], ["torch.index_select", "0.330", "1.15", "",
                                     "1.10 x"])

    def test_what_we_did_not_run_is_said(self):
        peer = {"name": "torch", "ms": 1.0, "ratio": 2.0}
        mine = list(compare.rows({}, {"ngram_embed": [peer]}))[0]
        self.assertEqual(mine[2], "not run")

    def test_a_goal_is_missed_met_or_passed(self):
        gather = works.WORKS[0]
        self.assertEqual(compare.goal(gather, 1.05), "ahead (1.05)")
        self.assertEqual(compare.goal(gather, 1.06), "met (1.08)")
        self.assertEqual(compare.goal(gather, 1.09), "MISSED (1.08)")

    def test_floors_are_those_of_our_benchmarks(self):
        self.assertEqual(works.gather_bytes(), works.ENTRIES * 4 * works.DIM)
        self.assertEqual(works.event_bytes(3, 2), 3 * 1536 + 2 * 3088)
        self.assertEqual(works.gradient_bytes(1), 8192 * 14336 + 8 * 7168)


class LmHeadTest(unittest.TestCase):
    def test_our_cases_are_read_with_goal_and_memory(self):
        def case(name, tokens, ms, mib):
            return {"benchmarks": [{
                "run_name": f"CudaHead{name}/tokens:{tokens}/dim:1/rows:2/x",
                "real_time": ms, "time_unit": "ms", "extra_MiB": mib}]}
        self.assertEqual(list(lm_head.ours([case("Keep", 8192, 41.9, 2140.2),
                                            case("Lean", 8192, 56.1, 288),
                                            case("Lean", 16384, 8.5, 400)])), [
            (8192, ["Rowhouse, keep", "41.90", "met (42)", "2,140"]),
            (8192, ["Rowhouse, lean", "56.10", "MISSED (56)", "288"]),
            (16384, ["Rowhouse, lean", "8.50", "ahead (8.5)", "400"])])


class PeersTest(unittest.TestCase):
    def start(self, *arguments):
        return subprocess.run(
            [sys.executable, str(PEERS / "peers.py"), *arguments],
            capture_output=True, text=True, check=False)

    def test_an_unknown_work_is_named_with_those_there_are(self):
        ended = self.start("gathr")
        self.assertEqual(ended.returncode, 2)
        self.assertIn("gathr is no work; there are gather, ", ended.stderr)

    def test_a_machine_without_pytorch_is_told_so(self):
        try:
            import torch  # noqa: F401
        except ImportError:
            ended = self.start()
            self.assertEqual(ended.returncode, 1)
            self.assertIn("it needs PyTorch with CUDA", ended.stderr)
        else:
            self.skipTest("PyTorch is here")


if __name__ == "__main__":
    unittest.main()
