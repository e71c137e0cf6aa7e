#!/usr/bin/env python3
"""Help, wrong arguments, wrong servers, and output that cannot be written."""
import os
import re
import subprocess

import harness
from harness import CliTest, run


class ArgumentTest(CliTest):
    def test_help(self):
        text = self.ok("--help")
        commands = re.findall(r"(?m)^  ([a-z]+) {2,}[A-Z]", text)
        for command in ("status", "list", "create", "describe", "import",
                        "reset", "delete", "pull", "digest", "events", "record",
                        "replay", "bench", "checkpoint", "completion"):
            self.assertIn(command, commands)
        self.assertIn("Exit codes:", text)
        commands = [(command,) for command in commands]
        commands += [("checkpoint", command) for command in (
            "create", "list", "inspect", "verify", "diff", "compact",
            "restore", "delete")]
        for command in commands:
            text = self.ok(*command, "--help")
            self.assertIn("Examples:", text, command)
            self.assertIn("rowhouse " + " ".join(command), text)
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
        error = self.refused(2, "'lst' is not a command of checkpoint",
                             "checkpoint", "lst")
        self.assertIn("did you mean list?", error)
        self.assertIn("`rowhouse checkpoint --help`", error)
        error = self.refused(2, "'--bas=x' is not an argument of checkpoint "
                             "create", "checkpoint", "create", "x", "--bas=x")
        self.assertIn("did you mean --base?", error)
        self.assertIn("`rowhouse checkpoint create --help`", error)
        self.refused(2, "subcommand is required", "checkpoint")
        self.refused(2, "no checkpoint's name", "checkpoint", "inspect", "A")
        self.refused(2, "'soon', wanted a whole number", "checkpoint", "create",
                     "x", "--tables=words@soon")
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

    def test_addresses_and_names_that_are_none(self):
        self.refused(2, "no servers", "list", "--servers=")
        self.refused(2, "99999", "list", "--servers=127.0.0.1:99999")
        for name in ("Words", "a/b", ""):
            self.refused(2, "no table's name", "describe", name)
        error = self.refused(2, "'-1', wanted a whole number of at least 0",
                             "pull", "words", "1", "--event=-1")
        self.assertLess(len(error), 200)

    def test_wrong_arguments_have_a_next_step(self):
        self.create("words")
        rows = self.folder / "rows.bin"
        rows.write_bytes(b"seven b")
        good = ["--rows=10", "--dim=4", "--reduction=sum", "--max-rows=1"]
        for step, *arguments in (
                ("`rowhouse --help`", "list", "--servers="),
                ("`rowhouse --help`", "list", "--servers=localhost"),
                ("`rowhouse --help`", "list", "--tls-ca=/nowhere.pem"),
                ("`rowhouse --help`", "list", "--tls-key=key.pem"),
                ("`rowhouse --help`", "pull", "words", "1", "--out="),
                ("`rowhouse create --help`", "create", "x"),
                ("`rowhouse create --help`", "create", "x", *good,
                 "--spec=/nowhere.textproto"),
                ("`rowhouse describe words`", "import", "words", str(rows)),
                ("`rowhouse import --help`", "import", "words", "/nowhere.npy"),
                ("`rowhouse pull --help`", "pull", "words", "x"),
                ("`rowhouse pull --help`", "pull", "words", "0-99999"),
                ("`rowhouse reset --help`", "reset", "words"),
                ("`rowhouse replay --help`", "replay", "words"),
                ("`rowhouse bench --help`", "bench", "--pulls=0",
                 "--pushes=0")):
            lines = self.refused(2, "rowhouse: ", *arguments).splitlines()
            self.assertEqual(len(lines), 2, lines)
            self.assertTrue(lines[1].startswith("  "), lines)
            self.assertIn(step, lines[1])

    def test_half_of_a_tls_identity(self):
        for flag in ("--tls-key=key.pem", "--tls-certificate=chain.pem"):
            self.refused(2, "one alone, wanted both or none", "status", flag)

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run(
                [harness.ROWHOUSE, "status",
                 "--servers=" + ",".join(self.cluster.addresses)],
                stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("stdout cannot be written: No space left", done.stderr)

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
        color = self.on_terminal("status", env={"TERM": "xterm"})[1]
        self.assertIn("\x1b[32mserving\x1b[0m", color)
        for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            plain = self.on_terminal("status", env=env)[1]
            self.assertIn("serving", plain)
            self.assertNotIn("\x1b", plain)


if __name__ == "__main__":
    harness.main()
