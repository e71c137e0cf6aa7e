#!/usr/bin/env python3
"""One interrupt ends every long command soon, also while a server is silent:
it has connections and answers nothing.
"""
import json
import signal
import unittest

import harness
from harness import CliTest, DIM, SilentAt, npy, run, start

# No call would end by itself before; and what "soon" is on a busy machine.
PATIENCE = "--timeout=300"
SOON = 20


class InterruptTest(CliTest):
    def start(self, *arguments, servers=None):
        return start(self, *arguments, PATIENCE,
                     servers=servers or self.cluster.addresses)

    def interrupt(self, process):
        """Returns what it ended with and said."""
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=SOON)
        return process.returncode, out, error

    def interrupt_at(self, method, *arguments):
        """Interrupts a command as its server falls silent at `method`."""
        silent = SilentAt(self.cluster.addresses[0], method)
        self.addCleanup(silent.close)
        process = self.start(*arguments, servers=[silent.address,
                                                  self.cluster.addresses[1]])
        while not silent.silent.wait(0.1):
            self.assertIsNone(process.poll(), f"ended before {method}")
        return self.interrupt(process)

    def freeze(self, index):
        self.cluster.freeze(index)
        self.addCleanup(self.cluster.thaw, index)

    def recorded_log(self):
        """Of all events of the example."""
        log = self.folder / f"{self.id()}.rhlog"
        self.train()
        self.ok("reset", "example", "--yes")
        recorder = self.start_recording("example", log, "--until=10")
        self.train()
        self.assertEqual(recorder.wait(timeout=60), 0)
        recorder.communicate()
        return log

    def test_record(self):
        self.create("words")
        for index in range(2):
            log = self.folder / f"silent{index}.rhlog"
            recorder = self.start_recording("words", log)
            self.freeze(index)
            code, out, error = self.interrupt(recorder)
            self.cluster.thaw(index)
            self.assertEqual(code, 0, error)
            self.assertIsNone(json.loads(out)["end_digest"])
            info = json.loads(
                run("replay", "--inspect", str(log), "--json").stdout)
            self.assertTrue(info["complete"])
            self.assertEqual(info["fault"], "")

    def test_record_that_answers_takes_its_digest(self):
        self.create("words")
        recorder = self.start_recording("words", self.folder / "answers.rhlog")
        code, out, error = self.interrupt(recorder)
        self.assertEqual(code, 0, error)
        self.assertEqual(json.loads(out)["end_digest"]["event"], 0)

    def test_record_before_its_beginning(self):
        self.create("words")
        log = self.folder / "never.rhlog"
        for method in ("GetTable", "RecordEvents"):
            code, out, error = self.interrupt_at(method, "record", "words",
                                                 str(log))
            self.assertEqual((code, out), (130, ""), error)
            self.assertIn("interrupted", error)
            self.assertFalse(log.exists())

    def test_replay(self):
        log = self.recorded_log()
        for method in ("CreateTable", "OpenSession", "PushGradients",
                       "CommitEvent", "DigestTable"):
            code, out, error = self.interrupt_at(method, "replay", "again",
                                                 str(log))
            self.assertEqual((code, out), (130, ""), error)
            self.assertIn("interrupted; ", error)
            self.call("delete", "again", "--yes")

    def test_bench(self):
        flags = ("--rows=1000", "--dim=8", "--batch=64", "--seconds=300")
        for number, method in enumerate(
                ("CreateTable", "OpenSession", "PullRows", "PushGradients",
                 "SealContribution", "CommitEvent")):
            code, out, error = self.interrupt_at(
                method, "bench", *flags, f"--table=bench{number}")
            self.assertEqual((code, out), (130, ""), error)
            self.assertIn("interrupted", error)
            self.assertIn(f"table bench{number} is left behind", error)

    def test_checkpoint(self):
        self.create("words")
        self.ok("checkpoint", "create", "first")
        for method, arguments in (
                ("ListTables", ("create", "never")),
                ("WriteCheckpoint", ("create", "never")),
                ("PublishCheckpoint", ("create", "never")),
                ("VerifyCheckpoint", ("verify", "first")),
                ("DiffCheckpoints", ("diff", "first", "first")),
                ("RestoreTable", ("restore", "first", "--yes"))):
            code, out, error = self.interrupt_at(method, "checkpoint",
                                                 *arguments)
            self.assertIn(code, (130, -signal.SIGINT), (method, error))
            self.assertEqual(out, "")
        self.ok("checkpoint", "restore", "first", "--yes")

    def test_import_and_pull(self):
        self.create("words")
        rows = self.folder / "rows.npy"
        npy(rows, "<f4", (10, DIM), bytes(10 * DIM * 4))
        for method, arguments in (
                ("ImportRows", ("import", "words", str(rows))),
                ("PullRows", ("pull", "words", "0-9",
                              f"--out={self.folder / 'out.npy'}"))):
            code, out, error = self.interrupt_at(method, *arguments)
            self.assertEqual((code, out), (-signal.SIGINT, ""), error)

    def test_a_server_that_is_silent_from_the_start(self):
        self.create("words")
        log = self.recorded_log()
        rows = self.folder / "rows.npy"
        npy(rows, "<f4", (10, DIM), bytes(10 * DIM * 4))
        self.freeze(1)
        for arguments in (("record", "words", str(self.folder / "no.rhlog")),
                          ("replay", "other", str(log)), ("bench",),
                          ("import", "words", str(rows)),
                          ("pull", "words", "0-9")):
            code, out, error = self.interrupt(self.start(*arguments))
            self.assertIn(code, (130, -signal.SIGINT), error)
            self.assertEqual(out, "")
        self.cluster.thaw(1)


if __name__ == "__main__":
    harness.main()
