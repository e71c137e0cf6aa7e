#!/usr/bin/env python3
"""A client that has nothing of ours (any_language.py) trains a dense table with
a language-model head. Two trainers, two shard server processes: event 1 is of
pushes and is checked bit for bit; event 2 is of a push and a head call each and
is checked against fp64.

usage: any_language_dense_test.py SERVER_BINARY PROTO_DIR
"""
import math
import random
import struct

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from any_language import (
    MASK, SHARDS, ClusterTest, G, HeadStream, bits_of, content, fl, history_sum,
    initial, main, mix64, pb, run_sum, square_sum)

ROWS, DIM, IGNORED = 301, 40, -100
BOUNDS = [0, 97, ROWS]

# What fp32 results may differ by from fp64, of the largest value. An fp32 sum
# of n terms errs by about sqrt(n) * 2^-24 of the terms' magnitudes where its
# roundings are random, in whatever order; n is at most 301 here, so 17 * 2^-24,
# and cancellation may take a factor of 4. (The CPU backend keeps within
# 12 * 2^-24; one rounding to bf16 on the way would be 2^-9 of a term.)
FP32 = 2.0**-18


def pack(row):
    return struct.pack(f"<{len(row)}f", *row)


def unpack(data):
    return list(struct.unpack(f"<{len(data) // 4}f", data))


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


class Oracle:
    """The whole table. A row's last element is its bias."""

    def __init__(self, seed, bound):
        self.p = [[initial(seed, bound, i, j) for j in range(DIM)] + [0.0]
                  for i in range(ROWS)]
        self.m = [[0.0] * (DIM + 1) for _ in range(ROWS)]
        self.v = [[0.0] * (DIM + 1) for _ in range(ROWS)]
        self.history = []

    def weights(self):
        return [row[:DIM] for row in self.p]

    def biases(self):
        return [row[DIM] for row in self.p]

    def adamw(self, main_grad, s, divisor):
        grad_mul = fl(s["gradient_scale"] / divisor)
        decay_mul = fl(1 - s["learning_rate"] * s["weight_decay"])
        step = fl(s["learning_rate"] / s["bias_correction1"])
        root2 = fl(math.sqrt(s["bias_correction2"]))
        b1, c1 = fl(s["beta1"]), fl(1 - s["beta1"])
        b2, c2 = fl(s["beta2"]), fl(1 - s["beta2"])
        eps = fl(s["eps"])
        for p, ms, vs, gradient in zip(self.p, self.m, self.v, main_grad):
            for j, x in enumerate(gradient):
                g = fl(fl(x) * grad_mul)
                ms[j] = m = fl(fl(b1 * ms[j]) + fl(c1 * g))
                vs[j] = v = fl(fl(b2 * vs[j]) + fl(fl(c2 * g) * g))
                root = fl(fl(fl(math.sqrt(v)) / root2) + eps)
                p[j] = fl(fl(p[j] * decay_mul) - fl(fl(step * m) / root))
        self.history.append(b2)

    def digest(self):
        total = 0
        for i, (p, m, v) in enumerate(zip(self.p, self.m, self.v)):
            x = y = 0
            # There is no array 1, the master.
            for array, values in zip((0, 2, 3, 4, 5, 6), (
                    p[:DIM], m[:DIM], v[:DIM], p[DIM:], m[DIM:], v[DIM:])):
                low, high = content(pack(values))
                key = (array + 1) * G
                x += mix64(low + key)
                y += mix64(high ^ mix64(key))
            total += mix64(mix64(x + (i + 1) * G) + mix64(y))
        return (total + history_sum(self.history)) & MASK

    def losses(self, hidden, targets):
        """(losses, (logits, maximum, sum of exp) of each token) in fp64."""
        losses, statistics = [], []
        for h, target in zip(hidden, targets):
            logits = [dot(row, h) + row[DIM] for row in self.p]
            top = max(logits)
            total = sum(math.exp(x - top) for x in logits)
            ignored = target == IGNORED
            losses.append(
                0.0 if ignored else math.log(total) - (logits[target] - top))
            statistics.append((logits, top, total))
        return losses, statistics

    def gradients(self, hidden, targets, upstream):
        """(hidden gradient, main_grad) in fp64."""
        statistics = self.losses(hidden, targets)[1]
        columns = list(zip(*self.weights()))
        hidden_gradient, main_grad = [], [[0.0] * (DIM + 1) for _ in self.p]
        for h, target, up, (logits, top, total) in zip(
                hidden, targets, upstream, statistics):
            p = [math.exp(x - top) / total * up for x in logits]
            if target != IGNORED:
                p[target] -= up
            hidden_gradient.append([dot(column, p) for column in columns])
            for row, x in zip(main_grad, p):
                for j, value in enumerate(h):
                    row[j] += x * value
                row[DIM] += x
        return hidden_gradient, main_grad


class AnyLanguageDenseTest(ClusterTest):
    TABLE, DIM, DTYPE = "tables/head", DIM, 2  # DATA_TYPE_FP32
    encode, decode = staticmethod(pack), staticmethod(unpack)

    def header(self, token_count, event, **more):
        return pb("lm_head_service").LinearCrossEntropyHeader(
            table=self.TABLE, event=event, token_count=token_count,
            hidden_dtype=self.DTYPE, **more)

    def send_inputs(self, header, hidden, targets, tokens_a_message,
                    class_weights=()):
        """A stream to each slice."""
        streams = []
        for shard, low, high in zip(self.shards, BOUNDS, BOUNDS[1:]):
            streams.append(HeadStream(shard, header, DIM))
            weights = class_weights[low:high]
            for first in range(0, len(weights), 50):
                streams[-1].send(class_weights=dict(
                    first_row=first, class_weights=weights[first:first + 50]))
            for first in range(0, len(targets), tokens_a_message):
                chosen = slice(first, first + tokens_a_message)
                streams[-1].send(inputs=dict(
                    first_token=first, targets=targets[chosen],
                    hidden=b"".join(map(pack, hidden[chosen]))))
        return streams

    @staticmethod
    def read_gradient(streams, token_count):
        """The hidden gradient; the streams end."""
        total = [0.0] * (token_count * DIM)
        for stream in streams:
            messages = stream.read("gradients", token_count)
            values = unpack(b"".join(m.hidden_gradient for m in messages))
            total = [fl(a + b) for a, b in zip(total, values)]
            stream.read_end()
        return [total[i:i + DIM] for i in range(0, len(total), DIM)]

    def open_head(self, header, hidden, targets, tokens_a_message):
        """(streams, statistics by slice: (max, sum, target logit) a token)"""
        streams = self.send_inputs(header, hidden, targets, tokens_a_message)
        slices = []
        for stream in streams:
            tokens = []
            for message in stream.read("statistics", len(targets)):
                tokens += zip(message.max_logits, message.exp_sums,
                              message.target_logits)
            slices.append(tokens)
        return streams, slices

    @staticmethod
    def merge(slices, targets):
        """[(loss, m, S)] by token."""
        out = []
        for target, token in zip(targets, zip(*slices)):
            top = max(m for m, _, _ in token)
            total = picked = 0.0
            for m, exp_sum, target_logit in token:
                total = fl(total + fl(exp_sum * fl(math.exp(fl(m - top)))))
                picked = fl(picked + target_logit)
            loss = fl(fl(math.log(total)) - fl(picked - top))
            out.append((0.0 if target == IGNORED else loss, top, total))
        return out

    def evaluate(self, event, hidden, targets):
        """Statistics by slice, by nobody in particular."""
        streams, slices = self.open_head(
            self.header(len(targets), event, evaluation=True),
            hidden, targets, tokens_a_message=64)
        for stream in streams:
            stream.read_end()
        return slices

    def train(self, trainer, event, part, hidden, targets, upstream, a_message):
        """(statistics by slice, merged statistics, hidden gradient)"""
        streams, slices = self.open_head(
            self.header(len(targets), event, trainer=trainer, part=part),
            hidden, targets, a_message)
        merged = self.merge(slices, targets)
        for stream in streams:
            for first in range(0, len(targets), a_message + 1):
                chosen = slice(first, first + a_message + 1)
                stream.send(merged_statistics=dict(
                    first_token=first,
                    max_logits=[m for _, m, _ in merged[chosen]],
                    exp_sums=[s for _, _, s in merged[chosen]],
                    upstream_gradients=upstream[chosen]))
        return slices, merged, self.read_gradient(streams, len(targets))

    def near(self, actual, expected, tolerance=FP32):
        """Within `tolerance` of the largest value."""
        actual, expected = list(actual), list(expected)
        self.assertEqual(len(actual), len(expected))
        largest = max(map(abs, expected))
        error = max(abs(a - b) for a, b in zip(actual, expected))
        self.assertLessEqual(error, tolerance * largest)

    def check_statistics(self, oracle, hidden, targets, slices):
        losses, expected = oracle.losses(hidden, targets)
        for s, (low, high) in enumerate(zip(BOUNDS, BOUNDS[1:])):
            logits = [token[0][low:high] for token in expected]
            tops = [max(x) for x in logits]
            self.near([m for m, _, _ in slices[s]], tops)
            self.near([e for _, e, _ in slices[s]],
                      [sum(math.exp(x - top) for x in row)
                       for row, top in zip(logits, tops)])
            self.near([t for _, _, t in slices[s]],
                      [row[target - low] if low <= target < high else 0.0
                       for row, target in zip(logits, targets)])
        self.near([loss for loss, _, _ in self.merge(slices, targets)], losses)

    def biases(self, event):
        """Every row's bias: the logit of a hidden state of zeros."""
        slices = self.evaluate(event, [[0.0] * DIM] * ROWS, range(ROWS))
        return [sum(logits) for logits in
                zip(*([t for _, _, t in tokens] for tokens in slices))]

    def folded(self, event, rank, part_count):
        """(parts, folded parts) of a rank on each shard, once so many are."""
        m = pb("event_service")
        out = []
        for shard in self.shards:
            state = shard.events.GetEventState(m.GetEventStateRequest(
                table=self.TABLE, wait_folded=m.FoldedParts(
                    event=event, trainer_rank=rank, part_count=part_count)))
            contribution = next(c for c in state.open_events[0].contributions
                                if c.trainer_rank == rank)
            out.append((contribution.part_count,
                        contribution.folded_part_count))
        return out

    def random_push(self, rng, trainer, event):
        """Pushes part 0, some rows of it twice, and returns its gradient."""
        ids = [rng.randrange(ROWS) for _ in range(90)] + [96, 97, 97, ROWS - 1]
        rows = [[fl(rng.gauss(0, 0.05)) for _ in range(DIM)] for _ in ids]
        self.push(trainer, event, 0, ids, rows, rows_a_message=13)
        runs = {}
        for row_id, row in zip(ids, rows):
            runs.setdefault(row_id, []).append(row)
        return {i: [run_sum(column) for column in zip(*run)]
                for i, run in runs.items()}

    def commit_adamw(self, trainers, event):
        scalars = dict(
            learning_rate=0.01, weight_decay=0.1, beta1=0.9, beta2=0.95,
            eps=0.01, bias_correction1=1 - 0.9**event,
            bias_correction2=1 - 0.95**event, gradient_scale=0.5)
        self.commit(trainers, event, adamw=pb("table").AdamWScalars(**scalars))
        return scalars

    def create_head(self, **more):
        """The table of ROWS rows in uneven slices; its bounds."""
        t = pb("table")
        return self.create(t.TableSpec(
            row_count=ROWS, dim=DIM, row_dtype=t.DATA_TYPE_FP32,
            gradient_dtype=t.DATA_TYPE_FP32, shard_count=SHARDS,
            shard_bounds=BOUNDS, initializer=t.RowInitializer(
                uniform=t.RowInitializer.Uniform(seed=9, bound=0.3)),
            dense=t.DenseTable(has_bias=True, max_head_token_count=ROWS),
            **more))

    def test_events_give_what_the_readme_states(self):
        rng = random.Random(11)
        t = pb("table")
        bounds = self.create_head(
            trainer_count=2, gradient_reduction=t.GRADIENT_REDUCTION_MEAN,
            max_contribution_row_count=200, max_part_count=4)
        self.assertEqual(bounds, BOUNDS)
        oracle = Oracle(9, 0.3)
        self.assertEqual(self.pull(list(range(ROWS)), 0), oracle.weights())
        self.assertEqual(self.biases(event=1), [0.0] * ROWS)
        self.assertEqual(self.digest(0), oracle.digest())

        trainers = [self.open_session(rank) for rank in (0, 1)]
        self.run_push_event(rng, trainers, oracle)
        tolerance = self.run_head_event(rng, trainers, oracle)
        for actual, expected in zip(self.pull(list(range(ROWS)), 2),
                                    oracle.weights()):
            self.assertLessEqual(max(abs(a - b) for a, b in
                                     zip(actual, expected)), tolerance)
        biases = self.biases(event=3)
        self.assertGreater(max(map(abs, biases)), 1e-4)
        self.assertLessEqual(max(abs(a - b) for a, b in
                                 zip(biases, oracle.biases())), tolerance)

        # An evaluation, now with biases. Its weights are those of the servers.
        oracle.p = [row + [bias] for row, bias in
                    zip(self.pull(list(range(ROWS)), 2), biases)]
        hidden, targets = self.tokens(rng, 70)
        slices = self.evaluate(3, hidden, targets)
        self.check_statistics(oracle, hidden, targets, slices)

    @staticmethod
    def tokens(rng, count):
        hidden = [[fl(rng.gauss(0, 1)) for _ in range(DIM)]
                  for _ in range(count)]
        targets = [rng.choice((IGNORED, 96, 97, *(rng.randrange(ROWS)
                                                  for _ in range(6))))
                   for _ in range(count)]
        return hidden, targets

    def run_push_event(self, rng, trainers, oracle):
        main_grad = [[0.0] * (DIM + 1) for _ in range(ROWS)]
        for trainer in trainers:  # That is the order (part, trainer_rank).
            for i, row in self.random_push(rng, trainer, 1).items():
                main_grad[i] = [fl(a + b) for a, b in
                                zip(main_grad[i], row + [0.0])]
        self.seal(trainers, 1, part_count=1)
        self.check_event_statistics(main_grad)
        oracle.adamw(main_grad, self.commit_adamw(trainers, 1), divisor=2)
        self.assertEqual(self.pull(list(range(ROWS)), 1), oracle.weights())
        self.assertEqual(self.digest(1), oracle.digest())

    def check_event_statistics(self, main_grad):
        sums, row_count = [0] * 255, 0
        for shard in self.shards:
            answer = shard.events.GetEventStatistics(
                pb("event_service").GetEventStatisticsRequest(
                    table=self.TABLE, event=1))
            sums = [a + b for a, b in zip(sums, answer.significand_sums)]
            row_count += answer.row_count
        self.assertEqual(row_count, 2 * ROWS)
        expected = [0] * 255
        for row in main_grad:
            bits = bits_of(square_sum(row[:DIM]))
            x = max(bits >> 23, 1)
            expected[x] += (bits & 0x7FFFFF) + (0x800000 if bits >> 23 else 0)
        self.assertEqual(sums, expected)

    def run_head_event(self, rng, trainers, oracle):
        """Returns by how much an element may differ after the event."""
        main_grad = [[0.0] * (DIM + 1) for _ in range(ROWS)]
        for trainer, count in zip(trainers, (61, 34)):
            for i, row in self.random_push(rng, trainer, 2).items():
                main_grad[i] = [a + b for a, b in
                                zip(main_grad[i], row + [0.0])]
            hidden, targets = self.tokens(rng, count)
            used = sum(target != IGNORED for target in targets)
            self.assertNotIn(used, (0, count))
            # Rank 0 averages the loss, rank 1 takes a sum with gradient 1/16.
            value = fl(1 / used) if trainer.trainer_rank == 0 else 0.0625
            upstream = [0.0 if x == IGNORED else value for x in targets]
            call = (trainer, 2, 1, hidden, targets, upstream)
            slices, merged, hidden_gradient = self.train(*call, 7)
            self.check_statistics(oracle, hidden, targets, slices)
            self.near([loss for loss, _, _ in merged],
                      oracle.losses(hidden, targets)[0])
            expected, weight_gradient = oracle.gradients(
                hidden, targets, upstream)
            self.near(sum(hidden_gradient, []), sum(expected, []))
            for row, more in zip(main_grad, weight_gradient):
                row[:] = [a + b for a, b in zip(row, more)]
            if trainer.trainer_rank == 0:
                # Part 1 of rank 0 comes after part 0 of rank 1.
                self.assertEqual(self.folded(2, 0, 1), [(2, 1)] * SHARDS)
        # The call again: the same bits, and it counts once.
        self.assertEqual(self.train(*call, 11),
                         (slices, merged, hidden_gradient))
        for rank in (0, 1):
            self.assertEqual(self.folded(2, rank, 2), [(2, 2)] * SHARDS)
        self.seal(trainers, 2, part_count=2)
        scalars = self.commit_adamw(trainers, 2)
        oracle.adamw(main_grad, scalars, divisor=2)
        # An update's slope over the gradient is about learning_rate / eps times
        # the scale at most, near a gradient of 0; its own roundings are a few
        # 2^-24 of the value, which is below 1.
        largest = max(abs(x) for row in main_grad for x in row)
        scale = scalars["gradient_scale"] / 2
        return (scalars["learning_rate"] / scalars["eps"] * scale
                * FP32 * largest + 4 * 2.0**-24)

    def test_a_loss_with_smoothing_and_class_weights(self):
        rng = random.Random(12)
        t = pb("table")
        self.TABLE = "tables/terms"
        self.create_head(
            trainer_count=1, gradient_reduction=t.GRADIENT_REDUCTION_SUM,
            max_contribution_row_count=1, max_part_count=1)
        oracle = Oracle(9, 0.3)
        trainer = self.open_session(0)
        hidden, targets = self.tokens(rng, 23)
        weights = [fl(rng.uniform(0, 2)) for _ in range(ROWS)]
        smoothing, weight_sum = 0.2, sum(weights)
        share = smoothing / ROWS

        # The call, as proto/README.md tells it.
        streams = self.send_inputs(
            self.header(len(targets), 1, trainer=trainer, part=0,
                        class_weights=True, weighted_logit_sums=True,
                        predicted_rows=True, coefficients=True),
            hidden, targets, 9, weights)
        slices, extra = [], []
        for stream in streams:
            messages = stream.read("statistics", len(targets))
            slices.append([s for m in messages for s in zip(
                m.max_logits, m.exp_sums, m.target_logits)])
            extra.append([s for m in messages for s in zip(
                m.max_logits, m.weighted_logit_sums, m.predicted_rows)])
        divisor = sum(weights[y] for y in targets if y != IGNORED)
        losses, predicted, merged = [], [], []
        for y, (plain, top, total), of_slices in zip(
                targets, self.merge(slices, targets), zip(*extra)):
            predicted.append(next(row for m, _, row in of_slices if m == top))
            z = 0.0
            for _, weighted, _ in of_slices:
                z = fl(z + weighted)
            hard = 0.0 if y == IGNORED else (1 - smoothing) * weights[y]
            soft = 0.0 if y == IGNORED else share
            lse = top + math.log(total)
            losses.append(hard * plain + soft * (weight_sum * lse - z))
            merged.append((top, total, fl((hard + soft * weight_sum) / divisor),
                           fl(hard / divisor), fl(soft / divisor)))
        columns = list(zip(*merged))
        for stream in streams:
            stream.send(merged_statistics=dict(
                first_token=0, max_logits=columns[0], exp_sums=columns[1],
                upstream_gradients=columns[2], target_coefficients=columns[3],
                smoothing_coefficients=columns[4]))
        hidden_gradient = self.read_gradient(streams, len(targets))

        # The loss and its gradient from the definition, in fp64.
        expected, rows, main_grad = [], [], [[0.0] * (DIM + 1) for _ in oracle.p]
        transposed = list(zip(*oracle.weights()))
        statistics = oracle.losses(hidden, targets)[1]
        for h, y, (logits, top, total) in zip(hidden, targets, statistics):
            lse = top + math.log(total)
            q = [share * w for w in weights]  # What each row's log counts.
            if y != IGNORED:
                q[y] += (1 - smoothing) * weights[y]
            else:
                q = [0.0] * ROWS
            expected.append(sum(a * (lse - x) for a, x in zip(q, logits)))
            dz = [(sum(q) * math.exp(x - lse) - a) / divisor
                  for a, x in zip(q, logits)]
            rows += [dot(column, dz) for column in transposed]
            for row, d in zip(main_grad, dz):
                row[:] = [a + d * b for a, b in zip(row, h + [1.0])]
        self.near(losses, expected)
        self.near(sum(hidden_gradient, []), rows)
        self.assertEqual(predicted, [x.index(max(x)) for x, _, _ in statistics])

        self.seal([trainer], 1, part_count=1)
        scalars = self.commit_adamw([trainer], 1)
        oracle.adamw(main_grad, scalars, divisor=1)
        # As for `run_head_event`.
        largest = max(abs(x) for row in main_grad for x in row)
        tolerance = (scalars["learning_rate"] / scalars["eps"]
                     * scalars["gradient_scale"] * FP32 * largest
                     + 4 * 2.0**-24)
        for actual, wanted in zip(self.pull(list(range(ROWS)), 1),
                                  oracle.weights()):
            self.assertLessEqual(
                max(abs(a - b) for a, b in zip(actual, wanted)), tolerance)

    def test_a_bad_target_is_refused_with_its_reason(self):
        t = pb("table")
        self.TABLE = "tables/small"
        self.create(t.TableSpec(
            row_count=ROWS, dim=DIM, row_dtype=t.DATA_TYPE_FP32,
            gradient_dtype=t.DATA_TYPE_FP32, shard_count=SHARDS,
            initializer=t.RowInitializer(zeros=t.RowInitializer.Zeros()),
            trainer_count=1, gradient_reduction=t.GRADIENT_REDUCTION_SUM,
            max_contribution_row_count=1, max_part_count=1,
            dense=t.DenseTable(max_head_token_count=8)))
        for target in (ROWS, -1):
            for shard in self.shards:
                stream = HeadStream(
                    shard, self.header(1, 1, evaluation=True), DIM)
                stream.send(inputs=dict(
                    first_token=0, targets=[target], hidden=pack([1.0] * DIM)))
                with self.assertRaises(grpc.RpcError) as caught:
                    next(stream.answers)
                stream.requests.put(None)
                info = error_details_pb2.ErrorInfo()
                status = rpc_status.from_call(caught.exception)
                self.assertTrue(status.details[0].Unpack(info))
                self.assertEqual(
                    (caught.exception.code(), info.domain, info.reason),
                    (grpc.StatusCode.OUT_OF_RANGE, "rowhouse",
                     "ROW_OUT_OF_TABLE"))


if __name__ == "__main__":
    main()
