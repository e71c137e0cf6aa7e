#!/usr/bin/env python3
"""Checkpoints, as a person makes and uses them: written while a table is
trained, looked at, and restored onto other servers.
"""
import signal

import harness
from harness import CliTest, Cluster, run

TABLE = "example"


class CheckpointTest(CliTest):
    def cli(self, *arguments, **options):
        return self.ok("checkpoint", *arguments, **options)

    def create_checkpoint(self, name, *more):
        return self.json("checkpoint", "create", name, *more)

    def start_create(self, name, *more):
        """One that is armed: it is cut at its event, whatever trainers do."""
        process = self.start("checkpoint", "create", name, "--json", *more)
        self.assertIn("writing checkpoint " + name, process.stderr.readline())
        return process

    def digest(self, table=TABLE, servers=None, event=None):
        more = [] if event is None else [f"--event={event}", "--timeout=60"]
        done = run("digest", table, *more,
                   servers=servers or self.cluster.addresses)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def other_cluster(self, server_count):
        cluster = Cluster(self.folder, f"other{server_count}", server_count,
                          self.checkpoint_config)
        self.addCleanup(cluster.close)
        return cluster.addresses

    def leftovers(self):
        return sorted(path.name for path in self.checkpoints.rglob("*"))

    def test_what_there_is(self):
        self.assertIn("no checkpoints", self.cli("list"))
        self.refused(2, "no tables", "checkpoint", "create", "empty")
        self.train()
        made = self.create_checkpoint("first")
        self.assertEqual(made["checkpoint"], "first")
        self.assertEqual([(t["table"], t["event"], t["saved_row_count"])
                          for t in made["tables"]], [(TABLE, 10, 1000000)])
        self.assertEqual(made["tables"][0]["spec"]["row_count"], 1000000)
        listed = self.json("checkpoint", "list")["checkpoints"]
        self.assertEqual([c["checkpoint"] for c in listed], ["first"])
        self.assertEqual(listed[0]["size_bytes"], made["size_bytes"])
        self.assertGreater(made["size_bytes"], 1000000 * 64 * 4)
        self.assertEqual(self.json("checkpoint", "inspect", "first")["tables"],
                         made["tables"])
        text = self.cli("inspect", "first")
        self.assertIn("all rows; 0 trainer states", text)
        self.assertRegex(text, r"example +10 +sparse +1,000,000 +64 +fp32 +2 ")
        self.assertRegex(self.cli("list"), r"first +20\S+ \S+Z +1 +10 +0 ")
        self.assertEqual(self.cli("list", "--names"), "first\n")
        self.assertIn("is as it was written", self.cli("verify", "first"))
        self.assertIn("equal", self.cli("diff", "first", "first"))

    def test_what_is_refused(self):
        self.train()
        self.create_checkpoint("first")
        before = self.leftovers()
        # It does not wait for its event, and leaves the first as it is.
        error = self.refused(1, "first is there already", "checkpoint",
                             "create", "first", f"--tables={TABLE}@1000")
        self.assertIn("take another name", error)
        self.assertEqual(self.leftovers(), before)
        error = self.refused(1, "", "checkpoint", "create", "late",
                             f"--tables={TABLE}@9")
        self.assertIn("--tables=TABLE@EVENT", error)
        for arguments in (("inspect", "none"), ("verify", "none"),
                          ("diff", "first", "none"),
                          ("compact", "none", "new"), ("restore", "none"),
                          ("delete", "none", "--yes"),
                          ("create", "new", "--base=none")):
            error = self.refused(1, "none", "checkpoint", *arguments)
            self.assertIn("`rowhouse checkpoint list`", error, arguments)
        self.refused(1, "no table other", "checkpoint", "restore", "first",
                     "--tables=other", "--yes")
        for flag in ("--shards=1", f"--tables={TABLE}:1"):
            self.refused(1, "2 shards, wanted 1", "checkpoint", "restore",
                         "first", flag, "--yes")
        self.refused(2, "wanted --yes", "checkpoint", "restore", "first")
        self.refused(2, "wanted --yes", "checkpoint", "delete", "first")
        self.assertEqual(self.leftovers(), before)

    def test_restored_onto_any_number_of_servers(self):
        self.train()
        at_10 = self.digest()
        self.create_checkpoint("ten")
        self.train()
        self.assertNotEqual(self.digest(), at_10)
        restored = self.json("checkpoint", "restore", "ten", "--yes")
        self.assertEqual([(t["table"], t["event"], t["shard_count"])
                          for t in restored["tables"]], [(TABLE, 10, 2)])
        self.assertEqual(self.digest(), at_10)
        for server_count in (1, 2, 3, 5):
            servers = self.other_cluster(server_count)
            done = run("checkpoint", "restore", "ten",
                       f"--shards={server_count}", servers=servers)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout,
                             rf"example +10 +1,000,000 +{server_count}\n")
            self.assertEqual(self.digest(servers=servers), at_10)

    def test_written_while_it_is_trained(self):
        self.train()
        process = self.start_create("mid", f"--tables={TABLE}@15")
        awaited = self.start("digest", TABLE, "--event=15", "--timeout=60")
        self.train()
        out, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, error)
        self.assertIn('"event": 15', out)
        at_15, error = awaited.communicate(timeout=60)
        self.assertEqual(self.digest().split()[-1], "20")
        self.cli("restore", "mid", "--yes")
        if awaited.returncode == 0:  # Else it came too late for the event.
            self.assertEqual(self.digest(), at_15)
        self.assertEqual(self.digest().split()[-1], "15")
        # It goes on as it did.
        self.train()
        self.assertEqual(self.digest().split()[-1], "25")

    def test_a_cancelled_one_leaves_nothing(self):
        self.train()
        process = self.start_create("never", f"--tables={TABLE}@1000")
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=20)
        self.assertEqual((process.returncode, out), (130, ""), error)
        self.assertIn("interrupted; nothing is left of checkpoint never", error)
        self.assertEqual(self.leftovers(), [])
        self.train()  # No event waits for it.
        self.create_checkpoint("next")

    def test_states_that_no_trainer_hands_in(self):
        self.train()
        self.refused(1, "the state of trainer 0 is missing", "checkpoint", "create", "lonely", "--trainer-states=1",
                     "--timeout=2", "--quiet")
        self.assertEqual(self.leftovers(), [])

    def test_chains(self):
        self.train()
        full = self.create_checkpoint("full")
        self.train()
        delta = self.create_checkpoint("delta", "--base=full")
        self.assertEqual(delta["base"], "full")
        self.assertEqual(delta["tables"][0]["saved_row_count"], 3)
        self.assertLess(delta["size_bytes"] * 100, full["size_bytes"])
        at_20 = self.digest()
        diff = self.call("checkpoint", "diff", "full", "delta", "--json")
        self.assertEqual(diff.returncode, 1, diff.stderr)
        self.assertIn('"differing_row_count": 3', diff.stdout)
        self.assertIn('"first_differing_row_id": 7', diff.stdout)
        error = self.refused(1, "delta", "checkpoint", "delete", "full",
                             "--yes")
        self.assertIn("`rowhouse checkpoint compact`", error)
        self.assertRegex(self.cli("compact", "delta", "whole"),
                         "example +20 +sparse +1,000,000 ")
        self.assertIn("equal", self.cli("diff", "delta", "whole"))
        self.assertIn("delta", self.cli("delete", "delta", "--yes"))
        self.cli("delete", "full", "--yes")
        self.cli("verify", "whole")
        self.ok("delete", TABLE, "--yes")
        self.cli("restore", "whole")  # It overwrites nothing.
        self.assertEqual(self.digest(), at_20)

    def test_a_bit_that_flipped(self):
        self.train()
        self.create_checkpoint("bad")
        file = next(self.checkpoints.glob(f"bad/{TABLE}/0-of-2.safetensors"))
        with open(file, "r+b") as damaged:
            damaged.seek(1000000)
            byte = damaged.read(1)[0]
            damaged.seek(1000000)
            damaged.write(bytes([byte ^ 16]))
        error = self.refused(1, "0-of-2.safetensors", "checkpoint", "verify",
                             "bad", "--quiet")
        self.assertRegex(error, "offset|byte")
        self.assertIn("restore another checkpoint", error)
        self.refused(1, "0-of-2.safetensors", "checkpoint", "restore", "bad",
                     "--yes", "--quiet")
        error = self.refused(1, "", "pull", TABLE, "7")
        self.assertIn(f"`rowhouse reset {TABLE}`", error)
        self.ok("reset", TABLE, "--yes")
        self.ok("pull", TABLE, "7")

    def test_servers_without_a_directory(self):
        cluster = Cluster(self.folder, "bare", 1)
        self.addCleanup(cluster.close)
        done = run("checkpoint", "list", servers=cluster.addresses)
        self.assertEqual(done.returncode, 1)
        self.assertIn("checkpoint { directory: ... }", done.stderr)


if __name__ == "__main__":
    harness.main()
