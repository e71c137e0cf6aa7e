#!/usr/bin/env python3
"""A client that has nothing of ours: stubs generated from the protos, default
channel options, the algorithm of proto/README.md. Runs events with two
trainers against two shard server processes and checks every number against
arithmetic done here.

usage: any_language_test.py SERVER_BINARY PROTO_DIR
"""
import importlib
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unittest

import grpc
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase)
from grpc_status import rpc_status
from grpc_tools import protoc

SERVER, PROTO_DIR = sys.argv[1], pathlib.Path(sys.argv[2])
ROWS, DIM, SHARDS = 1001, 40, 2
MASK, G = (1 << 64) - 1, 0x9E3779B97F4A7C15
SECRET = 0xC2B2AE3D27D4EB4F


def generate_stubs(out):
    protos = sorted(str(p) for p in (PROTO_DIR / "rowhouse/v1").glob("*.proto"))
    fault = protoc.main(["protoc", f"-I{PROTO_DIR}", f"--python_out={out}",
                         f"--grpc_python_out={out}", *protos])
    assert fault == 0, "protoc failed"
    sys.path.insert(0, str(out))


# ------------------------------------------------ arithmetic, written apart --

def fl(x):
    """One fp32 rounding. Each product, quotient and sum of two fp32 numbers is
    innocuous to compute in fp64 first."""
    try:
        return struct.unpack("<f", struct.pack("<f", x))[0]
    except OverflowError:
        return float("inf") if x > 0 else float("-inf")


def bits_of(x):
    return struct.unpack("<I", struct.pack("<f", x))[0]


def bf16(x):
    bits = bits_of(x)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF


def from_bf16(bits):
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


def mix64(x):
    x &= MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def hash3(seed, i, j):
    return mix64(mix64(seed + (i + 1) * G) + (j + 1) * G)


def initial(seed, bound, row, column):
    k = hash3(seed, row, column) >> 40
    return from_bf16(bf16(fl(fl(bound) * ((2 * k + 1 - 2**24) * 2.0**-24))))


def word_content(w, x):
    key = ((w + 1) * G) & MASK
    a, b = x ^ mix64(key), x ^ mix64(key ^ SECRET)
    swapped = ((x << 32) | (x >> 32)) & MASK
    return ((a & 0xFFFFFFFF) * (a >> 32) + swapped,
            (b & 0xFFFFFFFF) * (b >> 32) + x)


class Oracle:
    """The whole table, updated eagerly."""

    def __init__(self, seed, bound):
        self.rows = [[initial(seed, bound, i, j) for j in range(DIM)]
                     for i in range(ROWS)]
        self.v = [0.0] * ROWS
        self.history = []

    def event(self, entries, scalars, divisor):
        """`entries`: (row_id, row) in canonical order."""
        beta2 = fl(scalars["beta2"])
        scale = scalars["gradient_scale"] / divisor
        grad_mul = fl(scale)
        sq_mul = fl((1 - scalars["beta2"]) * (scale * scale))
        runs = {}
        for row_id, row in entries:
            runs.setdefault(row_id, []).append(row)
        for row_id in range(ROWS):
            self.v[row_id] = fl(self.v[row_id] * beta2)
        for row_id, run in runs.items():
            merged = [self.run_sum([row[j] for row in run])
                      for j in range(DIM)]
            squares = [0.0] * 256
            for j, g in enumerate(merged):
                squares[j % 256] = fl(squares[j % 256] + fl(g * g))
            offset = 128
            while offset:
                for i in range(offset):
                    squares[i] = fl(squares[i] + squares[i + offset])
                offset //= 2
            mean = fl(squares[0] / fl(DIM))
            v = fl(self.v[row_id] + fl(mean * sq_mul))
            self.v[row_id] = v
            denominator = fl(fl(v ** 0.5) + fl(scalars["eps"]))
            for j, g in enumerate(merged):
                p = self.rows[row_id][j]
                u = fl(fl(fl(g * grad_mul) / denominator)
                       * fl(scalars["step_size"]))
                if fl(u * p) > 0:
                    u = fl(u + fl(p * fl(scalars["decay"])))
                self.rows[row_id][j] = from_bf16(bf16(fl(p - u)))
        self.history.append(beta2)

    @staticmethod
    def run_sum(values):
        total = 0.0
        for start in range(0, len(values), 10):
            chunk = 0.0
            for value in values[start:start + 10]:
                chunk = fl(chunk + value)
            total = fl(total + chunk)
        return total

    def digest(self):
        total = 0
        for row_id, row in enumerate(self.rows):
            data = b"".join(struct.pack("<H", bf16(x)) for x in row)
            data += bytes(-len(data) % 8)
            low = high = 0
            for w, (x,) in enumerate(struct.iter_unpack("<Q", data)):
                a, b = word_content(w, x)
                low, high = low + a, high + b
            total += mix64(mix64(low + (row_id + 1) * G)
                           + mix64((high & MASK) ^ bits_of(self.v[row_id])))
        history = sum(hash3(SECRET, e, bits_of(b))
                      for e, b in enumerate(self.history, 1))
        return (total + mix64(history + len(self.history))) & MASK


# ------------------------------------------------------------------ client --

class Shard:
    """Stubs of one server, on a channel with default options."""

    def __init__(self, address):
        self.channel = grpc.insecure_channel(address)
        self.rows = pb("row_service", grpc_part=True).RowServiceStub(self.channel)
        self.events = pb("event_service", True).EventServiceStub(self.channel)
        self.tables = pb("table_service", True).TableServiceStub(self.channel)
        self.server = pb("server_service", True).ServerServiceStub(self.channel)


def pb(module, grpc_part=False):
    suffix = "_pb2_grpc" if grpc_part else "_pb2"
    return importlib.import_module(f"rowhouse.v1.{module}{suffix}")


def start_server(index):
    process = subprocess.Popen(
        [SERVER, f"--config={CONFIG}", f"--server_index={index}",
         "--listen=127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    assert "listening on " in line, f"no listening line: {line!r}"
    return process, line.split("listening on ")[1].strip()


class AnyLanguageTest(unittest.TestCase):
    TABLE = "tables/words"

    @classmethod
    def setUpClass(cls):
        cls.processes, cls.addresses = zip(*map(start_server, range(SHARDS)))
        cls.shards = [Shard(address) for address in cls.addresses]

    @classmethod
    def tearDownClass(cls):
        for process in cls.processes:
            process.terminate()
        assert [p.wait(30) for p in cls.processes] == [0] * SHARDS

    def split(self, row_ids):
        """Positions of `row_ids`, by shard."""
        positions = [[] for _ in self.shards]
        for i, row_id in enumerate(row_ids):
            shard = next(s for s in range(SHARDS)
                         if row_id < self.bounds[s + 1])
            positions[shard].append(i)
        return positions

    def pull(self, row_ids, event):
        out = [None] * len(row_ids)
        for shard, positions in zip(self.shards, self.split(row_ids)):
            request = pb("row_service").PullRowsRequest(
                table=self.TABLE, row_ids=[row_ids[i] for i in positions],
                exact_event=event)
            for answer in shard.rows.PullRows(request):
                self.assertEqual(answer.event, event)
                size = DIM * 2
                for k in range(len(answer.rows) // size):
                    row = answer.rows[k * size:(k + 1) * size]
                    out[positions[answer.first_row + k]] = [
                        from_bf16(x) for x, in struct.iter_unpack("<H", row)]
        return out

    def push(self, trainer, event, part, row_ids, rows, rows_a_message):
        m = pb("row_service")
        for shard, positions in zip(self.shards, self.split(row_ids)):
            header = m.PushGradientsHeader(
                table=self.TABLE, trainer=trainer, event=event, part=part,
                dtype=pb("table").DATA_TYPE_BF16, row_count=len(positions))
            messages = [m.PushGradientsRequest(header=header)]
            for first in range(0, len(positions), rows_a_message):
                chosen = positions[first:first + rows_a_message]
                messages.append(m.PushGradientsRequest(
                    first_row=first, row_ids=[row_ids[i] for i in chosen],
                    rows=b"".join(struct.pack("<H", bf16(x))
                                  for i in chosen for x in rows[i])))
            shard.rows.PushGradients(iter(messages))

    def test_training_events_give_the_bits_that_the_readme_states(self):
        rng = random.Random(7)
        t = pb("table")
        for index, shard in enumerate(self.shards):
            server = shard.server.GetServer(
                pb("server_service").GetServerRequest())
            self.assertEqual((server.server_index, server.server_count),
                             (index, SHARDS))
        spec = t.TableSpec(
            row_count=ROWS, dim=DIM, row_dtype=t.DATA_TYPE_BF16,
            gradient_dtype=t.DATA_TYPE_BF16, shard_count=SHARDS,
            initializer=t.RowInitializer(
                uniform=t.RowInitializer.Uniform(seed=5, bound=0.5)),
            trainer_count=2, gradient_reduction=t.GRADIENT_REDUCTION_MEAN,
            max_contribution_row_count=1000, max_part_count=4,
            sparse=t.SparseTable())
        for shard in self.shards:
            answer = shard.tables.CreateTable(
                pb("table_service").CreateTableRequest(
                    name=self.TABLE, spec=spec))
            self.bounds = list(answer.table.shard_bounds)
        self.assertEqual(self.bounds, [0, 500, 1001])
        oracle = Oracle(5, 0.5)
        self.assertEqual(self.digest(0), oracle.digest())

        trainers = [t.TrainerSession(trainer_rank=r, session=1) for r in (0, 1)]
        for trainer in trainers:
            for shard in self.shards:
                shard.events.OpenSession(pb("event_service").OpenSessionRequest(
                    table=self.TABLE, trainer=trainer, owner=rng.getrandbits(62) + 1))
        for event in (1, 2, 3):
            self.run_event(event, trainers, oracle, rng)
        self.assertEqual(self.pull(list(range(ROWS)), 3), oracle.rows)
        self.assertEqual(self.digest(3), oracle.digest())

    def run_event(self, event, trainers, oracle, rng):
        entries = []
        for trainer in trainers:
            for part in (0, 1):
                ids = [rng.choice((3, 499, 500, ROWS - 1, rng.randrange(ROWS)))
                       for _ in range(60)]
                rows = [[from_bf16(bf16(rng.gauss(0, 1))) for _ in range(DIM)]
                        for _ in ids]
                self.push(trainer, event, part, ids, rows, 7 + part)
                entries += zip(ids, rows)
        m = pb("event_service")
        for trainer in trainers:
            for shard in self.shards:
                shard.events.SealContribution(m.SealContributionRequest(
                    table=self.TABLE, trainer=trainer, event=event,
                    part_count=2))
        scalars = dict(step_size=0.125, decay=0.01, beta2=0.95, eps=1e-10,
                       gradient_scale=0.5)
        commit = pb("table").EventCommit(
            sessions=[1, 1], row_adam=pb("table").RowAdamScalars(**scalars))
        for shard in self.shards:
            state = shard.events.GetEventState(m.GetEventStateRequest(
                table=self.TABLE, wait_sealed_event=event))
            self.assertTrue(state.open_events[0].all_sealed)
        for shard in self.shards:
            shard.events.CommitEvent(m.CommitEventRequest(
                table=self.TABLE, trainer=trainers[0], event=event,
                commit=commit))
        oracle.event(entries, scalars, divisor=2)

    def digest(self, event):
        answers = [s.tables.DigestTable(pb("table_service").DigestTableRequest(
            name=self.TABLE, exact_event=event)) for s in self.shards]
        return (sum(a.row_sum for a in answers)
                + answers[0].history_sum) & MASK

    def test_a_fault_carries_details_that_standard_libraries_decode(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.shards[0].tables.GetTable(pb("table_service").GetTableRequest(
                name="tables/absent"))
        status = rpc_status.from_call(caught.exception)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)
        info = error_details_pb2.ErrorInfo()
        self.assertTrue(status.details[0].Unpack(info))
        self.assertEqual((info.domain, info.reason), ("rowhouse", "NO_SUCH_TABLE"))
        self.assertIn("tables/absent", status.message)

    def test_health_and_reflection_answer(self):
        health = health_pb2_grpc.HealthStub(self.shards[0].channel)
        for service in ("", "rowhouse.v1.RowService"):
            answer = health.Check(health_pb2.HealthCheckRequest(service=service))
            self.assertEqual(answer.status, health_pb2.HealthCheckResponse.SERVING)
        services = ProtoReflectionDescriptorDatabase(
            self.shards[1].channel).get_services()
        for name in ("RowService", "EventService", "TableService",
                     "ServerService"):
            self.assertIn(f"rowhouse.v1.{name}", services)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        generate_stubs(folder)
        CONFIG = pathlib.Path(folder) / "server.textproto"
        CONFIG.write_text(f'cluster_id: "any"\nserver_count: {SHARDS}\n')
        unittest.main(argv=sys.argv[:1], verbosity=2)
