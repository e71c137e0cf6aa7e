#!/usr/bin/env python3
"""Servers that die: half a cluster, none at all, one that goes in the middle.
"""
import json
import signal
import subprocess
import tempfile
import unittest

import harness
from harness import CliTest, Cluster, run, start


class LostServerTest(CliTest):
    """Recordings end when a server does, of its own accord or not."""

    def tearDown(self):
        pass  # A server has gone, and its tables with the cluster.

    def test_recordings_end(self):
        self.create("words")
        log = self.folder / "frozen.rhlog"
        recorder = self.start_recording("words", log, "--timeout=1")
        self.cluster.freeze(0)
        recorder.send_signal(signal.SIGINT)
        out, error = recorder.communicate(timeout=30)
        self.cluster.thaw(0)
        self.assertEqual(recorder.returncode, 0, error)
        self.assertIsNone(json.loads(out)["end_digest"])

        log = self.folder / "lost.rhlog"
        recorder = self.start_recording("words", log, "--timeout=1")
        self.cluster.kill(1)  # Server 0 has nothing to say.
        out, error = recorder.communicate(timeout=30)
        self.assertEqual(recorder.returncode, 3, error)
        self.assertIn(self.cluster.addresses[1], error)
        self.assertIn(self.cluster.addresses[1], json.loads(out)["fault"])
        done = run("replay", "--inspect", str(log), "--json")
        info = json.loads(done.stdout)
        self.assertTrue(info["complete"])
        self.assertRegex(info["fault"], "^UNAVAILABLE: ")
        self.assertNotIn("[", info["fault"])


class DeadServerTest(unittest.TestCase):
    """Each test has a cluster of its own, and ends some of it."""

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.cluster = Cluster(self.temporary.name)
        self.addCleanup(self.cluster.close)
        done = run("create", "words", "--rows=10", "--dim=4", "--reduction=sum",
                   "--max-rows=8", servers=self.cluster.addresses)
        self.assertEqual(done.returncode, 0, done.stderr)

    def call(self, *arguments):
        return run(*arguments, servers=self.cluster.addresses)

    def start(self, *arguments):
        return start(self, *arguments, servers=self.cluster.addresses)

    def test_half_a_cluster(self):
        self.cluster.kill(1)
        away = self.cluster.addresses[1]
        done = self.call("status")
        self.assertEqual(done.returncode, 3)
        self.assertIn("1 of 2 servers answer", done.stdout)
        self.assertRegex(done.stdout, away + r" +AWAY")
        self.assertRegex(done.stdout, r"words +0/2 +5 ")
        self.assertIn(away, done.stderr)
        self.assertIn("start them", done.stderr)
        done = self.call("status", "--json")
        self.assertEqual(done.returncode, 3)
        servers = json.loads(done.stdout)["servers"]
        self.assertEqual([s["ok"] for s in servers], [True, False])
        self.assertEqual(servers[1]["code"], "UNAVAILABLE")
        done = self.call("list")
        self.assertEqual(done.returncode, 3)
        self.assertIn("1 of 2", done.stdout)
        done = self.call("events", "words")
        self.assertEqual(done.returncode, 3)
        self.assertIn("(1 of 2 shards tell)", done.stdout)
        for command in (["describe", "words"], ["pull", "words", "0"],
                        ["digest", "words"], ["delete", "words", "--yes"],
                        ["bench"]):
            done = self.call(*command)
            self.assertEqual(done.returncode, 3, command)
            self.assertEqual(done.stdout, "")
            self.assertIn(f"1 of 2 servers did not answer: {away}", done.stderr)
            self.assertIn("`rowhouse status`", done.stderr)

    def test_a_load_ends_when_a_server_does(self):
        load = self.start("bench", "--rows=1000", "--dim=8", "--batch=64",
                          "--seconds=600", "--timeout=1")
        self.assertIn("bench [", load.stderr.readline())  # It is under way.
        self.cluster.kill(1)
        out, error = load.communicate(timeout=30)
        self.assertEqual(load.returncode, 3, error)
        self.assertEqual(out, "")
        self.assertIn(self.cluster.addresses[1], error)
        self.assertIn("table rowhouse-bench is left behind", error)
        self.assertIn("`rowhouse delete rowhouse-bench`", error)

    def test_a_server_that_has_lost_its_tables(self):
        self.cluster.kill(1)
        self.cluster.restart(1)
        done = self.call("status")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"words +0/2 +5 ")
        self.assertRegex(done.stdout, r"words +1/2 +LOST")
        done = self.call("digest", "words")
        self.assertEqual(done.returncode, 1)
        self.assertIn("create the table again, or delete it", done.stderr)

    def test_a_silent_server_has_the_time_that_was_given(self):
        self.cluster.freeze(1)
        digest = self.start("digest", "words", "--timeout=60")
        with self.assertRaises(subprocess.TimeoutExpired):
            digest.wait(timeout=2.5)
        self.cluster.thaw(1)
        out, error = digest.communicate(timeout=60)
        self.assertEqual(digest.returncode, 0, error)
        self.assertIn("event 0", out)

    def test_no_server_at_all(self):
        self.cluster.kill(0)
        self.cluster.kill(1)
        done = self.call("status")
        self.assertEqual(done.returncode, 3)
        self.assertIn("0 of 2 servers answer", done.stdout)
        done = self.call("events", "words")
        self.assertEqual(done.returncode, 3)
        self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    harness.main()
