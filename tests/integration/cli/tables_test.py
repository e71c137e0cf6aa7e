#!/usr/bin/env python3
"""Tables and their rows: create, describe, list, import, pull, digest, reset,
delete.
"""
import struct

import harness
from harness import CliTest, DIM, npy


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
        self.assertEqual(planned["spec"]["max_pull_bytes"], 0)  # The file's.
        self.assertEqual(self.json("list")["tables"], [])
        self.ok("create", "words", f"--spec={spec}")
        self.assertEqual(self.json("describe", "words")["spec"]["max_part_count"],
                         3)
        entry = self.folder / "entry.textproto"
        entry.write_text(f'name: "tables/x" spec {{ {body} sparse {{}} }}')
        self.ok("create", "others", f"--spec={entry}")
        tables = f"tables {{ {entry.read_text()} }}\n"
        entry.write_text("# A table.\n\n" + tables)
        self.ok("create", "others", f"--spec={entry}")
        entry.write_text('cluster_id: "x" server_count: 2\n' + tables)
        self.ok("create", "others", f"--spec={entry}")
        for count, body_of in ((0, 'cluster_id: "x"'), (2, tables + tables)):
            entry.write_text(body_of)
            self.refused(2, f"{entry}: {count} entries `tables`, wanted one",
                         "create", "x", f"--spec={entry}")
        entry.write_text('tables {\nname: "tables/x"\nspek {} }')
        self.refused(2, f"{entry}:3:", "create", "x", f"--spec={entry}")
        entry.write_text('name: "tables/x"')
        self.refused(2, "no spec, wanted", "create", "x", f"--spec={entry}")
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

    def test_a_tiny_table_reserves_little(self):
        text = self.ok("create", "words", "--rows=10", "--dim=4",
                       "--reduction=sum", "--max-rows=64")
        self.assertRegex(text, r"10 rows on 2 servers, [0-9.]+ KiB reserved")
        shards = self.json("describe", "words")["shards"]
        self.assertLess(sum(s["reserved_bytes"] for s in shards), 1 << 16)
        rows = self.json("pull", "words", *["3"] * 100)["rows"]
        self.assertEqual([r["row"] for r in rows], [3] * 100)

    def test_bytes_of_a_pull_call(self):
        def pull_bytes(rows, dim, *more):
            return self.json("create", "x", f"--rows={rows}", f"--dim={dim}",
                             "--reduction=sum", "--max-rows=64", "--dry-run",
                             *more)["spec"]["max_pull_bytes"]

        self.assertEqual(pull_bytes(10, 4), 64 * 4 * 2)  # --max-rows are more.
        self.assertEqual(pull_bytes(100, 4), 100 * 4 * 2)
        self.assertEqual(pull_bytes(100, 4, "--dtype=fp32"), 100 * 4 * 4)
        self.assertEqual(pull_bytes("1G", 8), 400000 * 8 * 2)
        self.assertEqual(pull_bytes("1G", 768), 0)  # The servers': 64 MiB.
        self.assertEqual(pull_bytes("32Ki", 1024), 0)
        self.assertEqual(pull_bytes(10, "4G"), 0)
        self.assertEqual(pull_bytes(10, 4, "--max-pull-bytes=64"), 64)
        self.assertEqual(pull_bytes(10, 4, "--max-pull-bytes=0"), 0)
        self.assertIn("64 MiB", self.ok("create", "--help"))

    def test_flags_that_mean_nothing_alone(self):
        good = ["--rows=10", "--dim=4", "--reduction=sum", "--max-rows=1",
                "--dry-run"]
        for flag, needed in (("--seed=7", "--uniform=1"),
                             ("--master", "--dense"), ("--bias", "--dense"),
                             ("--main-grad-dtype=bf16", "--dense"),
                             ("--max-head-tokens=5", "--dense"),
                             ("--ngram-sign-rows=8", "--ngram-sign-seed=1")):
            error = self.refused(2, flag.split("=")[0] + " without "
                                 + needed.split("=")[0], "create", "x", *good,
                                 flag)
            self.assertIn("`rowhouse create --help`", error)
            self.ok("create", "x", *good, flag, needed)
        made = self.json("create", "x", *good, "--max-head-tokens=5", "--bias",
                         "--master", "--main-grad-dtype=bf16", "--dense")
        self.assertEqual(made["spec"]["dense"],
                         {"has_bias": True, "has_master": True,
                          "main_grad_dtype": "bf16", "max_head_token_count": 5})
        # Beside a file that says what they need, they mean something.
        spec = self.folder / "company.textproto"
        spec.write_text(
            "row_count: 10 dim: 4 row_dtype: DATA_TYPE_FP32 shard_count: 2\n"
            "gradient_dtype: DATA_TYPE_BF16 trainer_count: 1\n"
            "gradient_reduction: GRADIENT_REDUCTION_SUM\n"
            "max_contribution_row_count: 64 max_part_count: 3\n"
            "initializer { uniform { bound: 0.5 } } dense {}\n")
        made = self.json("create", "x", f"--spec={spec}", "--seed=7", "--bias",
                         "--dry-run")["spec"]
        self.assertEqual(made["initializer"]["seed"], 7)
        self.assertTrue(made["dense"]["has_bias"])
        self.refused(2, "--ngram-sign-rows without", "create", "x",
                     f"--spec={spec}", "--ngram-sign-rows=8")

    def test_reset_and_delete_ask_first(self):
        self.create()
        for verb in ("reset", "delete"):
            self.refused(2, "wanted --yes", verb, "words")
            self.assertIn("no table", self.refused(1, "", verb, "none", "-y")
                          .replace("such ", ""))
        self.assertIn("back at event 0", self.ok("reset", "words", "--yes"))

        def answer(text):
            return self.on_terminal("delete", "words", prompt="Type words",
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
        out = self.folder / "kept.npy"
        self.ok("pull", "words", "0-9", f"--out={out}")
        before = out.read_bytes()
        self.refused(2, "row id 10", "pull", "words", "0-500", f"--out={out}")
        self.assertEqual(out.read_bytes(), before)
        self.assertFalse(out.with_name("kept.npy.part").exists())
        self.refused(2, "--out=FILE.npy", "pull", "words", "0-99999")
        for more in ("--json", f"--out={out}"):
            self.refused(2, "--all with " + more.split("=")[0], "pull", "words",
                         "0", "--all", more)

    def test_digest(self):
        self.create()
        text = self.ok("digest", "words")
        self.assertRegex(text, r"^[0-9a-f]{16}  words at event 0\n$")
        self.assertEqual(self.json("digest", "words")["digest"], text[:16])
        error = self.refused(1, "event 3", "digest", "words", "--event=3",
                             "--timeout=1")
        self.assertIn("`rowhouse events words`", error)


if __name__ == "__main__":
    harness.main()
