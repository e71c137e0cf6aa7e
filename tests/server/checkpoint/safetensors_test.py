#!/usr/bin/env python3
"""The Python package safetensors opens a checkpoint's files and sees its rows.

usage: safetensors_test.py WRITE_CHECKPOINT
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

import safetensors

ROWS, WIDTH = 10, 3


def weights(row, added=0):
    return [256 * row + j + added for j in range(WIDTH)]


def tensors(path):
    """Of a file by name: dtype, shape and elements, bf16 as its bits."""
    codes = {"BF16": "H", "I32": "i", "F32": "f", "I64": "q"}
    found = {}
    for name, tensor in safetensors.deserialize(path.read_bytes()):
        code = codes[tensor["dtype"]]
        data = bytes(tensor["data"])
        values = struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}",
                               data)
        found[name] = tensor["dtype"], tensor["shape"], list(values)
    return found


class SafetensorsTest(unittest.TestCase):
    program = ""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        subprocess.run([cls.program, cls.folder.name], check=True)
        cls.root = pathlib.Path(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_shards_have_the_rows_of_the_table(self):
        row = 0
        for index, count in enumerate((6, 0, 4)):
            found = tensors(
                self.root / f"full/words/{index}-of-3.safetensors")
            rows = range(row, row + count)
            self.assertEqual(found["weights"], (
                "BF16", [count, WIDTH], [e for i in rows for e in weights(i)]))
            self.assertEqual(found["row_state"], (
                "I32", [count, 2], [e for i in rows for e in (-i, 2)]))
            self.assertEqual(found["bias"],
                             ("F32", [count], [i / 2 for i in rows]))
            self.assertEqual(found["beta2_history"][:2], ("F32", [3]))
            row += count
        self.assertEqual(row, ROWS)

    def test_a_delta_names_its_rows(self):
        found = tensors(self.root / "delta/words/0-of-1.safetensors")
        self.assertEqual(found["row_ids"], ("I64", [3], [1, 5, 9]))
        self.assertEqual(found["weights"], (
            "BF16", [3, WIDTH], [e for i in (1, 5, 9) for e in weights(i, 7)]))

    def test_the_header_says_what_it_is(self):
        data = (self.root / "delta/words/0-of-1.safetensors").read_bytes()
        size, = struct.unpack_from("<Q", data)
        self.assertEqual((8 + size) % 4096, 0)
        metadata = json.loads(data[8:8 + size])["__metadata__"]
        self.assertEqual(metadata, {
            "format": "rowhouse-checkpoint-shard", "table": "words",
            "event": "3", "shard_index": "0", "shard_count": "1",
            "first_row_id": "0", "row_count": "10", "base_checkpoint": "full",
            "base_event": "2"})

    def test_a_file_that_is_cut_off_is_refused(self):
        data = (self.root / "full/words/0-of-3.safetensors").read_bytes()
        with self.assertRaises(safetensors.SafetensorError):
            safetensors.deserialize(data[:-1])


if __name__ == "__main__":
    SafetensorsTest.program = sys.argv.pop(1)
    unittest.main()
