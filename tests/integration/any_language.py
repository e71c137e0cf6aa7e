"""What a client in any language has: stubs generated from the protos, default
channel options, the algorithm of proto/README.md and arithmetic in plain
Python. The tests beside this file share it."""
import importlib
import pathlib
import queue
import random
import struct
import subprocess
import sys
import tempfile
import unittest

import grpc
from grpc_tools import protoc

SHARDS = 2
MASK, G = (1 << 64) - 1, 0x9E3779B97F4A7C15
SECRET = 0xC2B2AE3D27D4EB4F


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
    """An initial value of an fp32 row."""
    k = hash3(seed, row, column) >> 40
    return fl(fl(bound) * ((2 * k + 1 - 2**24) * 2.0**-24))


def run_sum(values):
    """The sum of a row's entries, in chunks of 10."""
    total = 0.0
    for start in range(0, len(values), 10):
        chunk = 0.0
        for value in values[start:start + 10]:
            chunk = fl(chunk + value)
        total = fl(total + chunk)
    return total


def square_sum(row):
    squares = [0.0] * 256
    for j, g in enumerate(row):
        squares[j % 256] = fl(squares[j % 256] + fl(g * g))
    offset = 128
    while offset:
        for i in range(offset):
            squares[i] = fl(squares[i] + squares[i + offset])
        offset //= 2
    return squares[0]


def word_content(w, x):
    key = ((w + 1) * G) & MASK
    a, b = x ^ mix64(key), x ^ mix64(key ^ SECRET)
    swapped = ((x << 32) | (x >> 32)) & MASK
    return ((a & 0xFFFFFFFF) * (a >> 32) + swapped,
            (b & 0xFFFFFFFF) * (b >> 32) + x)


def content(data):
    """(A, B) of an array of a row, from its bytes."""
    low = high = 0
    data += bytes(-len(data) % 8)
    for w, (x,) in enumerate(struct.iter_unpack("<Q", data)):
        a, b = word_content(w, x)
        low, high = low + a, high + b
    return low & MASK, high & MASK


def history_sum(history):
    return mix64(len(history) + sum(hash3(SECRET, e, bits_of(beta2))
                                    for e, beta2 in enumerate(history, 1)))


# ------------------------------------------------------------------ client --

def generate_stubs(proto_dir, out):
    protos = sorted(str(p) for p in (proto_dir / "rowhouse/v1").glob("*.proto"))
    fault = protoc.main(["protoc", f"-I{proto_dir}", f"--python_out={out}",
                         f"--grpc_python_out={out}", *protos])
    assert fault == 0, "protoc failed"
    sys.path.insert(0, str(out))


def pb(module, grpc_part=False):
    suffix = "_pb2_grpc" if grpc_part else "_pb2"
    return importlib.import_module(f"rowhouse.v1.{module}{suffix}")


class Shard:
    """Stubs of one server, on a channel with default options."""

    def __init__(self, address):
        self.channel = grpc.insecure_channel(address)
        self.rows = pb("row_service", grpc_part=True).RowServiceStub(self.channel)
        self.events = pb("event_service", True).EventServiceStub(self.channel)
        self.tables = pb("table_service", True).TableServiceStub(self.channel)
        self.server = pb("server_service", True).ServerServiceStub(self.channel)
        self.head = pb("lm_head_service", True).LmHeadServiceStub(self.channel)


class HeadStream:
    """One stream of a head call, to one shard."""

    def __init__(self, shard, header, dim):
        self.row_size = 4 * dim
        self.requests = queue.SimpleQueue()
        self.answers = shard.head.LinearCrossEntropy(
            iter(self.requests.get, None), timeout=60)
        self.send(header=header)

    def send(self, **phase):
        self.requests.put(
            pb("lm_head_service").LinearCrossEntropyRequest(**phase))

    def read(self, phase, token_count):
        """The messages of a phase."""
        messages, seen = [], 0
        while seen < token_count or not messages:
            answer = next(self.answers)
            assert answer.WhichOneof("phase") == phase
            message = getattr(answer, phase)
            assert message.first_token == seen
            seen += (len(message.max_logits) if phase == "statistics" else
                     len(message.hidden_gradient) // self.row_size)
            messages.append(message)
        assert seen == token_count
        return messages

    def read_end(self):
        """The server ends the stream; until then the client's half is open."""
        assert list(self.answers) == []
        self.requests.put(None)


class ClusterTest(unittest.TestCase):
    """A test against `SHARDS` server processes, with the client's calls on one
    table. Classes that derive say what its rows are."""

    TABLE = DIM = DTYPE = None
    binary = config = None  # Set by `main`.

    @staticmethod
    def encode(row):
        raise NotImplementedError

    @staticmethod
    def decode(data):
        raise NotImplementedError

    @classmethod
    def start_server(cls, index):
        process = subprocess.Popen(
            [cls.binary, f"--config={cls.config}", f"--server_index={index}",
             "--listen=127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
        line = process.stdout.readline()
        assert "listening on " in line, f"no listening line: {line!r}"
        return process, line.split("listening on ")[1].strip()

    @classmethod
    def setUpClass(cls):
        cls.processes, addresses = zip(*map(cls.start_server, range(SHARDS)))
        cls.shards = [Shard(address) for address in addresses]

    @classmethod
    def tearDownClass(cls):
        for process in cls.processes:
            process.terminate()
        assert [p.wait(30) for p in cls.processes] == [0] * SHARDS

    def create(self, spec):
        """Creates the table and returns its bounds."""
        for shard in self.shards:
            answer = shard.tables.CreateTable(
                pb("table_service").CreateTableRequest(
                    name=self.TABLE, spec=spec))
            self.bounds = list(answer.table.shard_bounds)
        return self.bounds

    def open_session(self, rank):
        m = pb("event_service")
        newest = 0
        for shard in self.shards:
            state = shard.events.GetEventState(
                m.GetEventStateRequest(table=self.TABLE))
            newest = max([newest] + [s.trainer.session for s in state.sessions
                                     if s.trainer.trainer_rank == rank])
        trainer = pb("table").TrainerSession(
            trainer_rank=rank, session=newest + 1)
        owner = random.getrandbits(62) + 1
        for shard in self.shards:
            shard.events.OpenSession(m.OpenSessionRequest(
                table=self.TABLE, trainer=trainer, owner=owner))
        return trainer

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
        size = len(self.encode([0.0] * self.DIM))
        for shard, positions in zip(self.shards, self.split(row_ids)):
            request = pb("row_service").PullRowsRequest(
                table=self.TABLE, row_ids=[row_ids[i] for i in positions],
                exact_event=event)
            for answer in shard.rows.PullRows(request):
                self.assertEqual(answer.event, event)
                for k in range(len(answer.rows) // size):
                    row = answer.rows[k * size:(k + 1) * size]
                    out[positions[answer.first_row + k]] = self.decode(row)
        return out

    def push(self, trainer, event, part, row_ids, rows, rows_a_message):
        m = pb("row_service")
        for shard, positions in zip(self.shards, self.split(row_ids)):
            header = m.PushGradientsHeader(
                table=self.TABLE, trainer=trainer, event=event, part=part,
                dtype=self.DTYPE, row_count=len(positions))
            messages = [m.PushGradientsRequest(header=header)]
            for first in range(0, len(positions), rows_a_message):
                chosen = positions[first:first + rows_a_message]
                messages.append(m.PushGradientsRequest(
                    first_row=first, row_ids=[row_ids[i] for i in chosen],
                    rows=b"".join(self.encode(rows[i]) for i in chosen)))
            shard.rows.PushGradients(iter(messages))

    def seal(self, trainers, event, part_count):
        for trainer in trainers:
            for shard in self.shards:
                shard.events.SealContribution(
                    pb("event_service").SealContributionRequest(
                        table=self.TABLE, trainer=trainer, event=event,
                        part_count=part_count))

    def commit(self, trainers, event, **update):
        m = pb("event_service")
        sessions = [trainer.session for trainer in trainers]
        for shard in self.shards:
            state = shard.events.GetEventState(m.GetEventStateRequest(
                table=self.TABLE, wait_sealed_event=event))
            self.assertTrue(state.open_events[0].all_sealed)
            self.assertEqual([c.session for c in
                              state.open_events[0].contributions], sessions)
        for shard in self.shards:
            shard.events.CommitEvent(m.CommitEventRequest(
                table=self.TABLE, trainer=trainers[0], event=event,
                commit=pb("table").EventCommit(sessions=sessions, **update)))

    def digest(self, event):
        answers = [s.tables.DigestTable(pb("table_service").DigestTableRequest(
            name=self.TABLE, exact_event=event)) for s in self.shards]
        return (sum(a.row_sum for a in answers)
                + answers[0].history_sum) & MASK


def main():
    """Runs the tests of the file that was started: SERVER_BINARY PROTO_DIR."""
    ClusterTest.binary, proto_dir = sys.argv[1], pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        generate_stubs(proto_dir, folder)
        ClusterTest.config = pathlib.Path(folder) / "server.textproto"
        ClusterTest.config.write_text(
            f'cluster_id: "any"\nserver_count: {SHARDS}\n')
        unittest.main(argv=sys.argv[:1], verbosity=2)
