#!/usr/bin/env python3
"""What goes on while tables are trained: status, events, push logs, and a load
of the tool's own.
"""
import json
import signal
import xml.etree.ElementTree

import harness
from harness import CliTest, DIM, npy, run


class TrainingTest(CliTest):
    def test_status_and_events_after_training(self):
        self.train()
        text = self.ok("status")
        self.assertIn("cluster cli-test: 2 of 2 servers answer", text)
        self.assertRegex(text, r"example +0/2 +500,000 ")
        status = self.json("status")
        self.assertEqual([s["ok"] for s in status["servers"]], [True, True])
        for server in status["servers"]:
            self.assertEqual(server["shards"][0]["events"]["event"], 10)
            load = server["shards"][0]["events"]["load"]
            self.assertEqual(load["parked_call_count"], 0)
            self.assertEqual(load["max_parked_call_count"], 1024)
        events = self.json("events", "example")
        self.assertEqual(events["event"], 10)
        self.assertEqual(events["open_events"][0]["event"], 11)
        self.assertEqual(events["open_events"][0]["awaited"], [0])
        self.assertEqual(events["open_events"][0]["ranks"][0]["session"], 1)
        last = events["applied_events"][-1]
        self.assertEqual((last["event"], last["update"], last["entry_count"],
                          last["row_count"]), (10, "row_adam", 4, 3))
        text = self.ok("events", "example")
        self.assertIn("open event 11: 0 of 1 ranks have sealed; awaited: 0",
                      text)
        self.assertIn("last keep-alive  lease", text)
        self.assertRegex(text, r"0 +1 +awaited .* ago +held")
        self.assertRegex(text, r"10 +row_adam +2 +4 +3 ")
        digest = self.ok("digest", "example", "--event=10")
        self.assertTrue(digest.startswith("08f097adffa7d20c"), digest)
        file = self.folder / "late.npy"
        npy(file, "<f4", (1, 64), bytes(256))
        error = self.refused(1, "", "import", "example", str(file))
        self.assertIn("`rowhouse reset example`", error)

    def test_ranks_that_never_joined_are_awaited(self):
        self.create("words", "--trainers=3")
        text = self.ok("events", "words")
        self.assertIn("0 of 3 ranks have sealed; awaited: 0-2", text)
        self.assertIn("never joined", text)
        self.assertIn("no event has been applied", text)
        self.refused(1, "no server has a table none", "events", "none")


class PushLogTest(CliTest):
    def test_a_recording_is_replayed_to_the_same_digest(self):
        self.train()
        self.ok("reset", "example", "--yes")
        log = self.folder / "example.rhlog"
        recorder = self.start_recording("example", log, "--until=10")
        self.train()
        out, error = recorder.communicate(timeout=60)
        self.assertEqual(recorder.returncode, 0, error)
        recorded = json.loads(out)
        self.assertEqual((recorded["start_event"], recorded["last_event"]),
                         (0, 10))
        self.assertEqual(recorded["end_digest"]["digest"], "08f097adffa7d20c")
        self.assertEqual(recorded["row_count"], 40)
        replayed = self.json("replay", "again", str(log))
        self.assertTrue(replayed["created"])
        self.assertTrue(replayed["digests_equal"])
        self.assertEqual(self.json("digest", "again")["digest"],
                         "08f097adffa7d20c")
        text = self.ok("replay", "one", str(log), "--shards=1")
        self.assertIn("digest 08f097adffa7d20c at event 10, the same as the "
                      "recorded table's", text)
        self.assertEqual(len(self.json("describe", "one")["shards"]), 1)
        done = run("replay", "--inspect", str(log))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("events 1 to 10 of table example", done.stdout)
        self.refused(2, "--overwrite", "record", "example", str(log))
        bad = self.folder / "bad.rhlog"
        bad.write_bytes(log.read_bytes()[:100] + b"?" + log.read_bytes()[101:])
        self.refused(2, "damaged", "replay", "bad", str(bad))

    def test_an_interrupt_ends_a_recording_in_order(self):
        self.train()
        log = self.folder / "short.rhlog"
        recorder = self.start_recording("example", log)
        recorder.send_signal(signal.SIGINT)
        out, error = recorder.communicate(timeout=60)
        self.assertEqual(recorder.returncode, 0, error)
        self.assertEqual(json.loads(out)["last_event"], 10)
        self.assertEqual(json.loads(out)["digest_fault"], "")
        done = run("replay", "--inspect", str(log), "--json")
        self.assertTrue(json.loads(done.stdout)["complete"])

    def test_status_tells_of_recorders(self):
        self.train()
        text = self.ok("status")
        self.assertRegex(text, r"(?m)^table .* recorders *$")
        self.assertRegex(text, r"(?m)^example +0/2 .* 0 *$")
        recorder = self.start_recording("example", self.folder / "told.rhlog")
        self.assertRegex(self.ok("status"), r"(?m)^example +1/2 .* 1 *$")
        for server in self.json("status")["servers"]:
            load = server["shards"][0]["events"]["load"]
            self.assertEqual(load["recording_count"], 1)
            self.assertEqual(load["recording_held_bytes"], 0)
            self.assertGreater(load["recording_buffer_bytes"], 0)
        recorder.send_signal(signal.SIGINT)
        recorder.communicate(timeout=60)

    def test_a_recording_of_no_event(self):
        self.create("words")
        log = self.folder / "empty.rhlog"
        recorder = self.start("record", "words", str(log))
        self.assertIn("recording", recorder.stderr.readline())
        recorder.send_signal(signal.SIGINT)
        out, error = recorder.communicate(timeout=60)
        self.assertEqual(recorder.returncode, 0, error)
        self.assertRegex(out, r"empty.rhlog: no event of table words, .*\n"
                              r"digest [0-9a-f]{16} at event 0\n$")
        done = run("replay", "--inspect", str(log))
        self.assertIn("empty.rhlog: no event of table words, ", done.stdout)
        self.assertIn("no event applied to table words",
                      self.ok("replay", "words", str(log)))

    def test_inspect_takes_a_log_alone(self):
        self.create("words")
        log = self.folder / "alone.rhlog"
        recorder = self.start_recording("words", log)
        recorder.send_signal(signal.SIGINT)
        recorder.communicate(timeout=60)
        for more in ("other.rhlog", "--shards=2"):
            done = run("replay", "--inspect", str(log), more)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("with --inspect, wanted" if more[0] == "-" else
                          "'other.rhlog' after", done.stderr)
        done = run("replay", "--inspect", str(log), "--json")
        info = json.loads(done.stdout)
        self.assertEqual(info["shard_bounds"], [0, 5, 10])
        self.assertEqual(len(info["arithmetic"]), 2)
        self.assertIn("; head blocks of ", info["arithmetic"][0])

    def test_what_cannot_be_replayed(self):
        self.refused(2, "wanted FILE", "replay", "words")
        self.refused(2, "/nowhere", "replay", "words", "/nowhere.rhlog")
        self.refused(2, "/nowhere", "replay", "--inspect", "/nowhere.rhlog")


class BenchTest(CliTest):
    FLAGS = ("--rows=1000", "--dim=8", "--batch=64", "--seconds=0.5",
             "--warm-up=0.1")

    def test_a_load_is_measured_and_its_table_goes(self):
        report = self.json("bench", *self.FLAGS, "--trainers=2", "--pulls=2")
        for operation in ("pull", "push", "event"):
            measured = report[operation]
            self.assertGreater(measured["calls"], 0)
            self.assertGreater(measured["p50_seconds"], 0)
            self.assertLessEqual(measured["p50_seconds"],
                                 measured["p99_seconds"])
            self.assertLessEqual(measured["p99_seconds"],
                                 measured["p999_seconds"])
        self.assertGreater(report["client_cpu_seconds_per_gigabyte"], 0)
        pull = report["pull"]
        self.assertAlmostEqual(pull["rows_per_second"],
                               64 * pull["calls_per_second"], delta=1)
        self.assertAlmostEqual(pull["gigabytes_per_second"] * 1e9,
                               16 * pull["rows_per_second"], delta=100)
        self.assertEqual(self.json("list")["tables"], [])

    def test_reads_alone(self):
        text = self.ok("bench", *self.FLAGS, "--pushes=0", "--dtype=fp32")
        self.assertRegex(text, r"(?m)^pull ")
        self.assertNotRegex(text, r"(?m)^(push|event) ")

    def test_a_table_that_is_there_is_left_alone(self):
        self.create("mine")
        self.refused(1, "--replace", "bench", *self.FLAGS, "--table=mine")
        self.assertEqual(self.json("describe", "mine")["spec"]["dim"], DIM)
        self.ok("bench", *self.FLAGS, "--table=mine", "--replace")
        self.assertEqual(self.json("list")["tables"], [])

    def test_a_table_that_was_refused_is_not_deleted(self):
        error = self.refused(1, "bytes", "bench", "--rows=100G", "--dim=8")
        self.assertIn("`rowhouse status`", error)
        self.assertNotIn("deleted", error)
        self.assertNotIn("left behind", error)

    def test_an_interrupt_leaves_nothing_behind(self):
        process = self.start("bench", "--rows=1000", "--dim=8", "--batch=64",
                             "--seconds=600")
        line = process.stderr.readline()  # It is under way.
        self.assertIn("bench [", line)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertEqual(out, "")
        self.assertIn("interrupted", err)
        self.assertIn("table rowhouse-bench is deleted", err)
        self.assertEqual(self.json("list")["tables"], [])


class CycleTest(CliTest):
    FLAGS = ("bench", "--cycle", "--rows=5000", "--dim=8", "--tokens=100",
             "--cycles=3")
    STAGES = {"want list", "ids sent", "rows awaited", "rows taken",
              "pull wait", "embed", "accumulate", "sum per row", "push",
              "seal", "commit", "event", "rest"}

    def check(self, report, rows):
        self.assertEqual(report["transport"], "TCP")
        self.assertEqual(report["cycle_count"], 3)
        self.assertGreater(report["cycle_p50_seconds"], 0)
        self.assertGreater(report["rows_per_cycle"], rows)
        self.assertLessEqual(report["rows_per_cycle"], 800)
        stages = {stage["stage"]: stage for stage in report["stages"]}
        self.assertEqual(set(stages), self.STAGES)
        for name in ("rows taken", "push", "sum per row"):
            self.assertEqual(stages[name]["bytes_per_cycle"],
                             16 * report["rows_per_cycle"], name)
        for name in ("embed", "accumulate"):
            self.assertEqual(stages[name]["bytes_per_cycle"], 16 * 400)
        self.assertEqual(stages["ids sent"]["bytes_per_cycle"],
                         8 * report["rows_per_cycle"])
        self.assertEqual(self.json("list")["tables"], [])

    def test_cycles_are_measured_and_their_table_goes(self):
        self.check(self.json(*self.FLAGS), 700)
        report = self.json(*self.FLAGS, "--no-prefetch", "--trainers=2",
                           "--zipf")
        self.check(report, 100)
        self.assertEqual((report["prefetch"], report["tokens"]),
                         (False, "zipf"))

    def test_a_prefetched_pull_is_under_way_while_the_trainer_works(self):
        flags = (*self.FLAGS, "--model-ms=20")
        ahead, late = (
            {stage["stage"]: stage["share_behind_work"]
             for stage in self.json(*flags, *more)["stages"]
             if "share_behind_work" in stage}
            for more in ((), ("--no-prefetch",)))
        self.assertGreater(ahead["rows awaited"], 0.2)
        for name in ("ids sent", "rows awaited", "rows taken"):
            self.assertEqual(late[name], 0)

    def test_a_time_line_is_drawn_and_its_spans_are_written(self):
        picture = self.folder / "cycle.svg"
        text = self.ok(*self.FLAGS, f"--timeline={picture}")
        self.assertRegex(text, r"(?m)^rows taken +[0-9.]+ +[0-9]+ % ")
        self.assertRegex(text, r"(?m)^cycle [0-9.,]+ ms, [0-9.,]+ tokens/s")
        root = xml.etree.ElementTree.parse(picture).getroot()
        shown = "\n".join(root.itertext())
        for lane in ("trainer", "pulls, shard 1", "pushes, shard 0",
                     "event, shard 1"):
            self.assertIn(lane, shown)
        report = json.loads(picture.with_suffix(".json").read_text())
        self.assertGreater(report["timeline_seconds"], 0)
        (trainer,) = report["trace"]["trainers"]
        self.assertEqual(len(trainer["cycles_begin"]), 4)
        self.assertEqual(trainer["cycles_begin"][0], 0)
        for span in trainer["spans"]:
            self.assertLessEqual(span["begin"], span["end"])
        events = {span["event"] for span in trainer["spans"]
                  if span["stage"] == "commit"}
        self.assertLessEqual({1, 2, 3, 4, 5}, events)

    def test_a_run_that_fails_leaves_files_as_they_were(self):
        self.create("mine")
        picture = self.folder / "failed.svg"
        spans = picture.with_suffix(".json")
        flags = (*self.FLAGS, "--table=mine", f"--timeline={picture}")
        self.refused(1, "--replace", *flags)
        self.assertFalse(picture.exists())
        self.assertFalse(spans.exists())
        picture.write_text("kept")
        self.refused(1, "--replace", *flags)
        self.assertEqual(picture.read_text(), "kept")
        spans.mkdir()
        self.refused(2, "failed.json cannot be written", *flags)

    def test_what_cannot_be_is_refused_before_a_table_is_made(self):
        self.refused(2, "ends in .svg", *self.FLAGS, "--timeline=cycle.png")
        self.refused(2, "cannot be written", *self.FLAGS,
                     "--timeline=/nowhere/cycle.svg")
        self.refused(2, "--cycle", "bench", "--tokens=100")
        self.refused(2, "--batch", *self.FLAGS, "--batch=4")

    def test_an_interrupt_leaves_nothing_behind(self):
        process = self.start("bench", "--cycle", "--rows=5000", "--dim=8",
                             "--tokens=100", "--cycles=2000",
                             "--model-ms=50")
        self.assertIn("bench [", process.stderr.readline())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (130, ""), err)
        self.assertIn("table rowhouse-bench is deleted", err)
        self.assertEqual(self.json("list")["tables"], [])


if __name__ == "__main__":
    harness.main()
