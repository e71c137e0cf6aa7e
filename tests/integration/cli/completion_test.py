#!/usr/bin/env python3
"""What shells offer: the scripts of `rowhouse completion`, in the shells
themselves.
"""
import os
import pathlib
import pty
import shutil
import subprocess

import harness
from harness import CliTest, run

PROMPT = "ready> "


class CompletionTest(CliTest):
    def environment(self, servers=True):
        folder = pathlib.Path(harness.ROWHOUSE).resolve().parent
        environment = {**os.environ, "PS1": PROMPT, "TERM": "dumb",
                       "PATH": f"{folder}:{os.environ['PATH']}"}
        environment.pop("ROWHOUSE_SERVERS", None)
        if servers:
            environment["ROWHOUSE_SERVERS"] = ",".join(self.cluster.addresses)
        return environment

    def shell(self, name):
        if shutil.which(name) is None:
            self.skipTest(f"no {name} here")
        return name

    def bash_offers(self, line, servers=True):
        """For the end of a line."""
        script = (
            "source <(rowhouse completion bash)\n"
            f"COMP_LINE={line!r} COMP_POINT={len(line)}\n"
            "compopt() { :; }\n"  # Works only while bash completes.
            "_rowhouse\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n")
        done = subprocess.run(["bash", "-c", script], text=True, check=True,
                              capture_output=True, timeout=60,
                              env=self.environment(servers))
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def fish_offers(self, line, servers=True):
        done = subprocess.run(
            [self.shell("fish"), "--no-config", "-c",
             f"rowhouse completion fish | source\ncomplete -C {line!r}\n"],
            text=True, check=True, capture_output=True, timeout=60,
            env=self.environment(servers))
        self.assertEqual(done.stderr, "")
        return [offer.split("\t")[0] for offer in done.stdout.splitlines()]

    def typed(self, shell, *lines):
        """What a shell on a terminal shows as lines are typed at its prompts."""
        environment = self.environment()
        pid, terminal = pty.fork()
        if pid == 0:
            os.execvpe(shell[0], shell, environment)
        lines = [*lines, "exit"]
        shown, prompts = "", 0
        try:
            while True:
                shown += os.read(terminal, 4096).decode()
                if lines and shown.count(PROMPT) > prompts:
                    prompts = shown.count(PROMPT)
                    os.write(terminal, (lines.pop(0) + "\n").encode())
        except OSError:  # The shell has gone.
            pass
        os.close(terminal)
        os.waitpid(pid, 0)
        return shown

    def check_tables(self, offers):
        self.create("words")
        self.create("ngram")
        for command in ("describe", "pull", "digest", "events", "record",
                        "replay", "import", "reset", "delete"):
            self.assertEqual(sorted(offers(f"rowhouse {command} ")),
                             ["ngram", "words"], command)
        self.assertEqual(offers("rowhouse pull w"), ["words"])
        self.assertEqual(offers("rowhouse pull --all w"), ["words"])
        self.assertEqual(offers("rowhouse --json digest n"), ["ngram"])
        for line in ("rowhouse create ", "rowhouse pull words ",
                     "rowhouse replay --inspect "):
            self.assertFalse({"words", "ngram"} & set(offers(line)), line)
        named = "rowhouse pull --servers=" + ",".join(self.cluster.addresses)
        self.assertEqual(offers(named + " w", servers=False), ["words"])
        self.assertEqual(offers(named.replace("=", " ") + " w", servers=False),
                         ["words"])
        self.assertNotIn("words", offers("rowhouse pull w", servers=False))
        away = "rowhouse pull --servers=127.0.0.1:1 w"
        self.assertNotIn("words", offers(away, servers=False))

    def check_checkpoints(self, offers):
        self.create("words")
        self.ok("checkpoint", "create", "first")
        for command in ("inspect", "verify", "diff", "compact", "restore",
                        "delete"):
            self.assertEqual(offers(f"rowhouse checkpoint {command} "),
                             ["first"], command)
        self.assertEqual(offers("rowhouse checkpoint diff first f"), ["first"])
        for line in ("rowhouse checkpoint create ",
                     "rowhouse checkpoint list ",
                     "rowhouse checkpoint compact first "):
            self.assertFalse({"first", "words"} & set(offers(line)), line)
        self.assertEqual(sorted(offers("rowhouse checkpoint c")),
                         ["compact", "create"])
        self.assertNotIn("stat", offers("rowhouse checkpoint stat"))
        # Flags of the group's command, and not of another one of its name.
        flags = [offer.rstrip("=") for offer in
                 offers("rowhouse checkpoint create new --")]
        self.assertIn("--base", flags)
        self.assertNotIn("--shards", flags)

    def check_typed(self, shell, *lines):
        """A table's name, completed and used after these lines."""
        self.create("words")
        shown = self.typed(shell, *lines, "rowhouse describe wo\t --json")
        self.assertIn('"table": "words"', shown)

    def test_bash_completes_commands_and_flags(self):
        offers = self.bash_offers
        self.assertEqual(offers("rowhouse stat"), ["status"])
        self.assertEqual(sorted(offers("rowhouse de")), ["delete", "describe"])
        self.assertEqual(offers("rowhouse create words --shar"), ["--shards="])
        self.assertEqual(offers("rowhouse --json pull --al"), ["--all"])
        self.assertEqual(offers("rowhouse status --al"), [])
        self.assertEqual(offers("rowhouse list --serv"), ["--servers="])
        self.assertEqual(offers("rowhouse list --servers "), [])
        # A value is no place for a flag.
        self.assertEqual(offers("rowhouse create words --dtype="), [])
        self.assertEqual(offers("rowhouse completion z"), ["zsh"])

    def test_bash_completes_tables(self):
        self.check_tables(self.bash_offers)
        self.check_typed(["bash", "--norc", "-i"],
                         "source <(rowhouse completion bash)")

    def test_bash_completes_checkpoints(self):
        self.check_checkpoints(self.bash_offers)

    def test_fish_completes_checkpoints(self):
        self.check_checkpoints(self.fish_offers)

    def test_zsh_completes_checkpoints(self):
        self.create("words")
        self.ok("checkpoint", "create", "first")
        shown = self.typed([self.shell("zsh"), "-f", "-i"],
                           "autoload -U compinit && compinit -D -u",
                           "source <(rowhouse completion zsh)",
                           "rowhouse checkpo\t insp\t fi\t --js\t")
        self.assertIn('"checkpoint": "first"', shown)

    def test_zsh_completes_tables(self):
        self.check_typed([self.shell("zsh"), "-f", "-i"],
                         "autoload -U compinit && compinit -D -u",
                         "source <(rowhouse completion zsh)")

    def test_zsh_completes_commands_and_flags(self):
        self.create("words")
        shown = self.typed([self.shell("zsh"), "-f", "-i"],
                           "autoload -U compinit && compinit -D -u",
                           "source <(rowhouse completion zsh)",
                           "rowhouse desc\t words --js\t")
        self.assertIn('"table": "words"', shown)

    def test_fish_completes_commands_and_flags(self):
        offers = self.fish_offers
        self.assertEqual(offers("rowhouse stat"), ["status"])
        self.assertIn("--shards", offers("rowhouse create words --shar"))
        self.assertEqual(offers("rowhouse completion z"), ["zsh"])

    def test_fish_completes_tables(self):
        self.check_tables(self.fish_offers)

    def test_every_command_is_in_every_script(self):
        for shell in ("bash", "zsh", "fish"):
            script = self.ok("completion", shell)
            for command in ("status", "import", "completion"):
                self.assertIn(command, script)
            self.assertIn("first-row", script)
        self.refused(2, "shell", "completion", "tcsh")

    def test_names(self):
        self.assertEqual(self.ok("list", "--names"), "")
        self.create("words")
        self.create("ngram")
        self.assertEqual(self.ok("list", "--names"), "ngram\nwords\n")
        self.refused(2, "--json", "list", "--names", "--json")
        done = run("list", "--names", servers=["127.0.0.1:1"])
        self.assertEqual((done.returncode, done.stdout), (3, ""))


if __name__ == "__main__":
    harness.main()
