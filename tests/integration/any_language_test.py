#!/usr/bin/env python3
"""A client that has nothing of ours (any_language.py) trains a sparse table.
Runs events with two trainers against two shard server processes and checks
every number against arithmetic done here.

usage: any_language_test.py SERVER_BINARY PROTO_DIR
"""
import random
import struct

import grpc
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase)
from grpc_status import rpc_status

from any_language import (
    MASK, SHARDS, ClusterTest, G, bf16, bits_of, content, fl, from_bf16,
    history_sum, initial, main, mix64, pb, run_sum, square_sum)

ROWS, DIM = 1001, 40


class Oracle:
    """The whole table, updated eagerly."""

    def __init__(self, seed, bound):
        self.rows = [[from_bf16(bf16(initial(seed, bound, i, j)))
                      for j in range(DIM)] for i in range(ROWS)]
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
            merged = [run_sum(column) for column in zip(*run)]
            mean = fl(square_sum(merged) / fl(DIM))
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

    def digest(self):
        total = 0
        for row_id, row in enumerate(self.rows):
            data = b"".join(struct.pack("<H", bf16(x)) for x in row)
            low, high = content(data)
            total += mix64(mix64(low + (row_id + 1) * G)
                           + mix64(high ^ bits_of(self.v[row_id])))
        return (total + history_sum(self.history)) & MASK


class AnyLanguageTest(ClusterTest):
    TABLE, DIM, DTYPE = "tables/words", DIM, 1  # DATA_TYPE_BF16

    @staticmethod
    def encode(row):
        return b"".join(struct.pack("<H", bf16(x)) for x in row)

    @staticmethod
    def decode(data):
        return [from_bf16(x) for x, in struct.iter_unpack("<H", data)]

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
        self.assertEqual(self.create(spec), [0, 500, 1001])
        oracle = Oracle(5, 0.5)
        self.assertEqual(self.digest(0), oracle.digest())

        trainers = [self.open_session(rank) for rank in (0, 1)]
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
        self.seal(trainers, event, part_count=2)
        scalars = dict(step_size=0.125, decay=0.01, beta2=0.95, eps=1e-10,
                       gradient_scale=0.5)
        self.commit(trainers, event,
                    row_adam=pb("table").RowAdamScalars(**scalars))
        oracle.event(entries, scalars, divisor=2)

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
    main()
