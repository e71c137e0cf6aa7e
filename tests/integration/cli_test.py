#!/usr/bin/env python3
"""The command line tool, as a person uses it: every command against two real
server processes, wrong arguments, a dead server, half a cluster.

usage: cli_test.py ROWHOUSE SERVER_BINARY TRAIN_ROWS_BINARY
"""
import json
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

ROWHOUSE = SERVER = TRAIN_ROWS = None  # Set by `main`.
DIM = 4


class Cluster:
    """Two server processes on free ports."""

    def __init__(self, folder, cluster_id="cli-test"):
        self.config = pathlib.Path(folder) / f"{cluster_id}.textproto"
        self.config.write_text(
            f'cluster_id: "{cluster_id}"\nserver_count: 2\nthread_count: 1\n'
            "memory_limit_bytes: 4294967296\n")
        self.processes, self.addresses = [], []
        for index in range(2):
            process = subprocess.Popen(
                [SERVER, f"--config={self.config}", f"--server_index={index}",
                 "--listen=127.0.0.1:0", "--log_level=error"],
                stdout=subprocess.PIPE, text=True)
            line = process.stdout.readline()
            assert "listening on " in line, f"no listening line: {line!r}"
            self.processes.append(process)
            self.addresses.append(line.split("listening on ")[1].strip())

    def kill(self, index):
        self.processes[index].kill()
        self.processes[index].wait()

    def close(self):
        for process in self.processes:
            process.kill()
            process.wait()
            process.stdout.close()


def run(*arguments, servers=None, stdin="", env=None):
    """Runs `rowhouse`; stdin is no terminal."""
    environment = {k: v for k, v in os.environ.items()
                   if k != "ROWHOUSE_SERVERS"}
    if servers:
        environment["ROWHOUSE_SERVERS"] = ",".join(servers)
    environment.update(env or {})
    return subprocess.run([ROWHOUSE, *arguments], input=stdin, text=True,
                          capture_output=True, env=environment, timeout=120)


def npy(path, descr, shape, data, order="False"):
    head = (f"{{'descr': '{descr}', 'fortran_order': {order}, "
            f"'shape': {shape}, }}").encode()
    head += b" " * (-(10 + len(head) + 1) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head
                     + data)


class CliTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.cluster = Cluster(cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.cluster.close()
        cls.temporary.cleanup()

    def tearDown(self):
        for table in self.json("list")["tables"]:
            self.ok("delete", table["table"], "--yes")

    def call(self, *arguments, **options):
        return run(*arguments, servers=self.cluster.addresses, **options)

    def ok(self, *arguments, **options):
        done = self.call(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def json(self, *arguments, **options):
        return json.loads(self.ok(*arguments, "--json", **options))

    def refused(self, code, message, *arguments, **options):
        """Fails with this exit code, a message and nothing on stdout."""
        done = self.call(*arguments, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(message, done.stderr)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def on_terminal(self, *arguments, prompt=None, answer="", env=None):
        """Runs on a terminal, where it types `answer` after `prompt`; returns
        exit code and what was shown."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(ROWHOUSE, [ROWHOUSE, *arguments, "--servers="
                                 + ",".join(self.cluster.addresses)],
                      {**os.environ, **(env or {})})
        shown = ""
        try:
            while True:
                shown += os.read(terminal, 4096).decode()
                if prompt and prompt in shown:
                    prompt = None
                    os.write(terminal, answer.encode())
        except OSError:  # The other end has closed.
            pass
        os.close(terminal)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown

    def create(self, table="words", *more):
        self.ok("create", table, "--rows=10", f"--dim={DIM}", "--dtype=fp32",
                "--reduction=sum", "--max-rows=64", *more)


class TableTest(CliTest):
    def test_create_describe_list_delete(self):
        text = self.ok("create", "words", "--rows=1K", "--dim=4",
                       "--reduction=mean", "--trainers=2", "--max-rows=64")
        self.assertIn("table words: 1,000 rows on 2 servers", text)
        described = self.json("describe", "words")
        self.assertEqual(described["spec"]["row_count"], 1000)
        self.assertEqual(described["spec"]["gradient_reduction"], "mean")
        self.assertEqual([(s["first_row"], s["end_row"])
                          for s in described["shards"]], [(0, 500), (500, 1000)])
        text = self.ok("describe", "words")
        self.assertIn("1,000 of 4 bf16", text)
        self.assertIn(self.cluster.addresses[1], text)
        listed = self.json("list")["tables"]
        self.assertEqual([t["table"] for t in listed], ["words"])
        self.assertRegex(self.ok("list"), r"words +sparse +1,000 +4 +bf16 +2 ")
        self.assertIn("table words is deleted", self.ok("delete", "words", "-y"))
        self.assertIn("`rowhouse create`", self.ok("list"))

    def test_the_same_table_again_is_ok_and_another_is_not(self):
        self.create()
        self.create()
        error = self.refused(1, "row_count", "create", "words", "--rows=11",
                             f"--dim={DIM}", "--dtype=fp32", "--reduction=sum",
                             "--max-rows=64")
        self.assertIn("`rowhouse describe words`", error)

    def test_a_spec_file(self):
        spec = self.folder / "spec.textproto"
        body = ("row_count: 10 dim: 4 row_dtype: DATA_TYPE_FP32\n"
                "gradient_dtype: DATA_TYPE_BF16 shard_count: 2\n"
                "trainer_count: 1 gradient_reduction: GRADIENT_REDUCTION_SUM\n"
                "max_contribution_row_count: 64 max_part_count: 3\n")
        spec.write_text(body + "dense { has_bias: true }\n")
        planned = self.json("create", "words", f"--spec={spec}", "--dry-run",
                            "--trainers=3")
        self.assertEqual(planned["spec"]["trainer_count"], 3)
        self.assertTrue(planned["spec"]["dense"]["has_bias"])
        self.assertEqual(self.json("list")["tables"], [])
        self.ok("create", "words", f"--spec={spec}")
        self.assertEqual(self.json("describe", "words")["spec"]["max_part_count"],
                         3)
        entry = self.folder / "entry.textproto"
        entry.write_text(f'name: "tables/x" spec {{ {body} sparse {{}} }}')
        self.ok("create", "others", f"--spec={entry}")
        spec.write_text(body + "dence {}\n")
        self.refused(2, f"{spec}:5:", "create", "x", f"--spec={spec}")
        spec.write_text(body)
        self.refused(2, "no kind of table", "create", "x", f"--spec={spec}")

    def test_specs_that_are_none(self):
        self.refused(2, "no --rows", "create", "x")
        self.refused(2, "no --reduction", "create", "x", "--rows=1", "--dim=1")
        self.refused(2, "wanted a count", "create", "x", "--rows=ten")
        self.refused(2, "--dtype", "create", "x", "--dtype=fp8")
        good = ["--rows=10", "--dim=4", "--reduction=sum", "--max-rows=1"]
        error = self.refused(2, "trainer_count", "create", "x", *good,
                             "--trainers=5000")
        self.assertIn("`rowhouse create --help`", error)
        error = self.refused(2, "name", "create", "X", *good)
        self.assertIn("[a-z0-9_-]", error)
        error = self.refused(1, "bytes", "create", "x", "--rows=1G", "--dim=1Ki",
                             "--reduction=sum", "--max-rows=1")
        self.assertIn("`rowhouse status`", error)

    def test_reset_and_delete_ask_first(self):
        self.create()
        for verb in ("reset", "delete"):
            self.refused(2, "wanted --yes", verb, "words")
            self.assertIn("no table", self.refused(1, "", verb, "none", "-y")
                          .replace("such ", ""))
        self.assertIn("back at event 0", self.ok("reset", "words", "--yes"))

        def answer(text):
            return self.on_terminal("delete", "words", prompt="Type its name",
                                    answer=text)[0]

        self.assertEqual(answer("no\n"), 1)
        self.assertEqual(len(self.json("list")["tables"]), 1)
        self.assertEqual(answer("words\n"), 0)
        self.assertEqual(len(self.json("list")["tables"]), 0)


class RowTest(CliTest):
    def test_import_and_pull(self):
        self.create()
        rows = [float(i) for i in range(10 * DIM)]
        file = self.folder / "rows.npy"
        npy(file, "<f4", (10, DIM), struct.pack(f"<{10 * DIM}f", *rows))
        done = self.call("import", "words", str(file))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("10 rows written to table words", done.stdout)
        self.assertIn("importing [####", done.stderr)
        self.assertIn("100 %", done.stderr)
        pulled = self.json("pull", "words", "9", "0-1")
        self.assertEqual([(r["row"], r["values"]) for r in pulled["rows"]],
                         [(i, rows[i * DIM:(i + 1) * DIM]) for i in (9, 0, 1)])
        self.assertEqual(pulled["event"], 0)
        self.assertRegex(self.ok("pull", "words", "9"),
                         r"9 +36 +37 +38 +39\n")
        pulled = self.json("pull", "words", "-", stdin="3 # hot\n7-8\n")
        self.assertEqual([r["row"] for r in pulled["rows"]], [3, 7, 8])
        out = self.folder / "out.npy"
        self.assertIn("10 rows", self.ok("pull", "words", "0-9", f"--out={out}"))
        self.assertEqual(out.read_bytes(), file.read_bytes())
        self.assertEqual(self.call("import", "words", str(file), "-q").stderr,
                         "")

    def test_raw_rows_from_a_row_on(self):
        self.create()
        file = self.folder / "rows.bin"
        file.write_bytes(struct.pack(f"<{2 * DIM}f", *[7.0] * (2 * DIM)))
        self.ok("import", "words", str(file), "--first-row=4")
        rows = self.json("pull", "words", "3-6")["rows"]
        self.assertEqual([r["values"][0] for r in rows], [0, 7, 7, 0])
        self.refused(2, "wanted rows in [0, 10)", "import", "words", str(file),
                     "--first-row=9")
        file.write_bytes(b"seven b")
        self.refused(2, "wanted whole rows of 16 bytes", "import", "words",
                     str(file))

    def test_files_that_cannot_be_rows(self):
        self.create()
        file = self.folder / "bad.npy"
        file.write_bytes(b"no array at all")
        self.refused(2, "wanted a .npy file", "import", "words", str(file))
        npy(file, "<f8", (1, DIM), bytes(8 * DIM))
        self.refused(2, "an array of '<f8', wanted '<f4'", "import", "words",
                     str(file))
        npy(file, "<f4", (1, 5), bytes(20))
        self.refused(2, "wanted (rows, 4)", "import", "words", str(file))
        npy(file, "<f4", (2, DIM), bytes(4 * DIM))
        self.refused(2, "wanted 2 rows of 16 bytes", "import", "words",
                     str(file))
        self.refused(2, "/nowhere.npy cannot be read", "import", "words",
                     "/nowhere.npy")

    def test_rows_that_are_not_there(self):
        self.create()
        error = self.refused(2, "row id 10", "pull", "words", "10")
        self.assertIn("`rowhouse describe words`", error)
        self.refused(2, "wanted a row id", "pull", "words", "x")
        error = self.refused(1, "none", "pull", "none", "0")
        self.assertIn("`rowhouse list`", error)
        self.refused(2, "--out=FILE.npy", "pull", "words", "0-99999")

    def test_digest(self):
        self.create()
        text = self.ok("digest", "words")
        self.assertRegex(text, r"^[0-9a-f]{16}  words at event 0\n$")
        self.assertEqual(self.json("digest", "words")["digest"], text[:16])
        error = self.refused(1, "event 3", "digest", "words", "--event=3",
                             "--timeout=1")
        self.assertIn("`rowhouse events words`", error)


class TrainingTest(CliTest):
    def test_status_and_events_after_training(self):
        subprocess.run([TRAIN_ROWS, *self.cluster.addresses], check=True,
                       capture_output=True, timeout=120)
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
    def train(self):
        subprocess.run([TRAIN_ROWS, *self.cluster.addresses], check=True,
                       capture_output=True, timeout=120)

    def start_recording(self, log, *more):
        """A recorder that has begun."""
        recorder = subprocess.Popen(
            [ROWHOUSE, "record", "example", str(log), "--json", *more,
             "--servers=" + ",".join(self.cluster.addresses)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(recorder.kill)
        self.assertIn("recording", recorder.stderr.readline())
        return recorder

    def test_a_recording_is_replayed_to_the_same_digest(self):
        self.train()
        self.ok("reset", "example", "--yes")
        log = self.folder / "example.rhlog"
        recorder = self.start_recording(log, "--until=10")
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
        recorder = self.start_recording(log)
        recorder.send_signal(signal.SIGINT)
        out, error = recorder.communicate(timeout=60)
        self.assertEqual(recorder.returncode, 0, error)
        self.assertEqual(json.loads(out)["last_event"], 10)
        done = run("replay", "--inspect", str(log), "--json")
        self.assertTrue(json.loads(done.stdout)["complete"])

    def test_what_cannot_be_replayed(self):
        self.refused(2, "wanted FILE", "replay", "words")
        self.refused(2, "/nowhere", "replay", "words", "/nowhere.rhlog")
        self.refused(2, "/nowhere", "replay", "--inspect", "/nowhere.rhlog")


class LostServerTest(CliTest):
    """Recordings end when a server does, of its own accord or not."""

    def tearDown(self):
        pass  # A server has gone, and its tables with the cluster.

    def record(self, log):
        recorder = subprocess.Popen(
            [ROWHOUSE, "record", "words", str(log), "--json", "--timeout=1",
             "--servers=" + ",".join(self.cluster.addresses)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(recorder.kill)
        self.assertIn("recording", recorder.stderr.readline())
        return recorder

    def test_recordings_end(self):
        self.create("words")
        log = self.folder / "frozen.rhlog"
        recorder = self.record(log)
        self.cluster.processes[0].send_signal(signal.SIGSTOP)
        recorder.send_signal(signal.SIGINT)
        out, error = recorder.communicate(timeout=30)
        self.cluster.processes[0].send_signal(signal.SIGCONT)
        self.assertEqual(recorder.returncode, 0, error)
        self.assertIsNone(json.loads(out)["end_digest"])

        log = self.folder / "lost.rhlog"
        recorder = self.record(log)
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

    def test_an_interrupt_leaves_nothing_behind(self):
        process = subprocess.Popen(
            [ROWHOUSE, "bench", "--rows=1000", "--dim=8", "--batch=64",
             "--seconds=600", "--servers=" + ",".join(self.cluster.addresses)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = process.stderr.readline()  # It is under way.
        self.assertIn("bench [", line)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertEqual(out, "")
        self.assertIn("interrupted", err)
        self.assertEqual(self.json("list")["tables"], [])


class ArgumentTest(CliTest):
    def test_help(self):
        text = self.ok("--help")
        commands = re.findall(r"(?m)^  ([a-z]+) {2,}[A-Z]", text)
        for command in ("status", "list", "create", "describe", "import",
                        "reset", "delete", "pull", "digest", "events", "record",
                        "replay", "bench", "completion"):
            self.assertIn(command, commands)
        self.assertIn("Exit codes:", text)
        for command in commands:
            text = self.ok(command, "--help")
            self.assertIn("Examples:", text, command)
            self.assertIn(f"rowhouse {command}", text)
        self.assertRegex(self.ok("--version"), r"^rowhouse \d+\.\d+\.\d+\n$")

    def test_wrong_arguments(self):
        error = self.refused(2, "'stats' is not a command", "stats")
        self.assertIn("did you mean status?", error)
        self.assertIn("`rowhouse --help`", error)
        error = self.refused(2, "'--sever=x' is not an argument of status",
                             "status", "--sever=x")
        self.assertIn("did you mean --servers?", error)
        error = self.refused(2, "table is required", "describe")
        self.assertIn("`rowhouse describe --help`", error)
        self.refused(2, "'b' is not an argument of describe", "describe", "a",
                     "b")
        self.refused(2, "--timeout", "list", "--timeout=soon")
        self.refused(2, "subcommand is required")
        self.refused(2, "0, wanted a count in [1, 4096]", "bench",
                     "--trainers=0")
        self.refused(2, "wanted one above 0", "bench", "--pulls=0",
                     "--pushes=0")

    def test_which_servers(self):
        done = run("list")
        self.assertEqual(done.returncode, 2)
        self.assertIn("ROWHOUSE_SERVERS", done.stderr)
        self.refused(2, "wanted HOST:PORT", "list", "--servers=localhost")
        # The flag goes before the environment, and before or after the command.
        servers = "--servers=" + ",".join(self.cluster.addresses)
        for arguments in ((servers, "list"), ("list", servers)):
            done = run(*arguments, env={"ROWHOUSE_SERVERS": "127.0.0.1:1"})
            self.assertEqual(done.returncode, 0, done.stderr)
        self.refused(2, "/nowhere.pem cannot be read", "list",
                     "--tls-ca=/nowhere.pem")

    def test_servers_that_are_others(self):
        error = self.refused(1, "cluster id cli-test, wanted prod", "create",
                             "x", "--rows=1", "--dim=1", "--reduction=sum",
                             "--max-rows=1", "--cluster-id=prod")
        self.assertIn("in the order of their indexes", error)
        done = run("digest", "x", servers=self.cluster.addresses[::-1])
        self.assertEqual(done.returncode, 1)
        self.assertIn("server index 1, wanted 0", done.stderr)
        done = run("status", servers=self.cluster.addresses[::-1])
        self.assertEqual(done.returncode, 1)
        self.assertIn("2 of 2 servers answer, but 2 of them WRONG", done.stdout)
        self.assertEqual(done.stdout.count("WRONG"), 3)
        self.assertIn("server index 1, wanted 0", done.stderr)

    def test_color_is_for_terminals_that_want_it(self):
        self.assertNotIn("\x1b", self.ok("status"))
        self.assertIn("\x1b[32mserving\x1b[0m", self.on_terminal("status")[1])
        plain = self.on_terminal("status", env={"NO_COLOR": "1"})[1]
        self.assertIn("serving", plain)
        self.assertNotIn("\x1b", plain)


class CompletionTest(CliTest):
    def complete(self, line):
        """What bash offers for the last word of a line."""
        words = line.split(" ")
        script = (
            "source <(\"$ROWHOUSE\" completion bash)\n"
            f"COMP_WORDS=({' '.join(repr(w) for w in words)})\n"
            f"COMP_CWORD={len(words) - 1}\n"
            "compopt() { :; }\n"  # Works only while bash completes.
            "_rowhouse\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n")
        done = subprocess.run(["bash", "-c", script], text=True, check=True,
                              capture_output=True,
                              env={**os.environ, "ROWHOUSE": ROWHOUSE})
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_completes_commands_and_flags(self):
        self.assertEqual(self.complete("rowhouse stat"), ["status"])
        self.assertEqual(sorted(self.complete("rowhouse de")),
                         ["delete", "describe"])
        self.assertEqual(self.complete("rowhouse create words --shar"),
                         ["--shards="])
        self.assertEqual(self.complete("rowhouse --json pull --al"), ["--all"])
        self.assertEqual(self.complete("rowhouse status --al"), [])
        self.assertEqual(self.complete("rowhouse list --serv"), ["--servers="])
        self.assertEqual(self.complete("rowhouse completion z"), ["zsh"])

    def test_every_command_is_in_every_script(self):
        for shell in ("bash", "zsh", "fish"):
            script = self.ok("completion", shell)
            for command in ("status", "import", "completion"):
                self.assertIn(command, script)
            self.assertIn("first-row", script)
        self.refused(2, "shell", "completion", "tcsh")


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

    def test_no_server_at_all(self):
        self.cluster.kill(0)
        self.cluster.kill(1)
        done = self.call("status")
        self.assertEqual(done.returncode, 3)
        self.assertIn("0 of 2 servers answer", done.stdout)
        done = self.call("events", "words")
        self.assertEqual(done.returncode, 3)
        self.assertEqual(done.stdout, "")


def main():
    global ROWHOUSE, SERVER, TRAIN_ROWS
    ROWHOUSE, SERVER, TRAIN_ROWS = sys.argv[1:4]
    # unittest would take the base for a test of its own.
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)


if __name__ == "__main__":
    main()
