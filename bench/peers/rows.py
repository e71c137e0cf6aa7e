"""Sparse rows in PyTorch and Triton: gather, and row-Adam events."""
import torch
import triton
import triton.language as tl

from timing import milliseconds
from works import (DIM, ENTRIES, EVENT_ROWS, PARTS, WHOLE_ROWS, event_bytes,
                   gather_bytes)

BETA2, EPS, STEP, DECAY = 0.95, 1e-10, 0.01, 0.001


def generator():
    return torch.Generator(device="cuda").manual_seed(1)


def spread(row_count):
    """One row at random from each of equal shares of a table, in order."""
    share = row_count // ENTRIES
    first = torch.arange(ENTRIES, device="cuda", dtype=torch.int64) * share
    return first + torch.randint(share, (ENTRIES,), device="cuda",
                                 generator=generator())


def overlapping(row_count):
    """Parts in order: half of each rows that many want, half any rows."""
    size = ENTRIES // PARTS
    parts = []
    random = generator()
    for _ in range(PARTS):
        part = torch.empty(0, dtype=torch.int64, device="cuda")
        while part.numel() < size:
            shared = torch.randint(65536, (size,), device="cuda",
                                   generator=random) * (row_count // 65536)
            other = torch.randint(row_count, (size,), device="cuda",
                                  generator=random)
            pick = torch.rand(size, device="cuda", generator=random) < 0.5
            more = torch.where(pick, shared, other)[:size - part.numel()]
            part = torch.unique(torch.cat((part, more)))
        parts.append(part)
    return torch.cat(parts)


def gradients():
    return torch.randn(ENTRIES, DIM, device="cuda", generator=generator(),
                       dtype=torch.float32).bfloat16()


def gather():
    table = torch.zeros(WHOLE_ROWS, DIM, dtype=torch.bfloat16, device="cuda")
    slots = spread(WHOLE_ROWS)
    slots = slots[torch.randperm(ENTRIES, device="cuda", generator=generator())]
    out = torch.empty(ENTRIES, DIM, dtype=torch.bfloat16, device="cuda")
    yield ("torch.index_select", gather_bytes(),
           milliseconds(lambda: torch.index_select(table, 0, slots, out=out)))


@triton.jit
def row_adam_kernel(table, moment, last, rows, starts, order, entries,
                    step, decay, beta2, eps, dim: tl.constexpr,
                    block: tl.constexpr):
    """A program a row: sums its entries, then updates row and moment."""
    i = tl.program_id(0)
    row = tl.load(rows + i)
    columns = tl.arange(0, block)
    inside = columns < dim
    total = tl.zeros([block], tl.float32)
    for e in range(tl.load(starts + i), tl.load(starts + i + 1)):
        entry = tl.load(order + e)
        total += tl.load(entries + entry * dim + columns, mask=inside,
                         other=0.0).to(tl.float32)
    second = (tl.load(moment + row) * beta2
              + tl.sum(total * total) / dim * (1 - beta2))
    tl.store(moment + row, second)
    tl.store(last + row, 1)
    weight = tl.load(table + row * dim + columns, mask=inside,
                     other=0.0).to(tl.float32)
    update = total / (tl.sqrt(second) + eps) * step
    update += tl.where(update * weight > 0, weight * decay, 0.0)
    tl.store(table + row * dim + columns, (weight - update).to(tl.bfloat16),
             mask=inside)


def event(slots, in_order):
    """An event by sorting, counting and one Triton kernel, and PyTorch's own
    merge alone, without the update."""
    table = torch.zeros(EVENT_ROWS, DIM, dtype=torch.bfloat16, device="cuda")
    moment = torch.zeros(EVENT_ROWS, device="cuda")
    last = torch.zeros(EVENT_ROWS, dtype=torch.int32, device="cuda")
    entries = gradients()
    numbers = torch.arange(ENTRIES, device="cuda")
    ends = torch.arange(ENTRIES + 1, device="cuda")
    distinct = torch.unique(slots)

    def apply():
        rows, order, starts = slots, numbers, ends
        if not in_order:
            in_turn, order = torch.sort(slots, stable=True)
            rows, counts = torch.unique_consecutive(in_turn, return_counts=True)
            starts = torch.nn.functional.pad(torch.cumsum(counts, 0), (1, 0))
        row_adam_kernel[(rows.numel(),)](
            table, moment, last, rows, starts, order, entries, STEP, DECAY,
            BETA2, EPS, dim=DIM, block=1024)

    sums = torch.zeros(distinct.numel(), DIM, dtype=torch.bfloat16,
                       device="cuda")
    places = torch.searchsorted(distinct, slots)

    def merge():
        sums.zero_()
        sums.index_add_(0, places, entries)

    floor = event_bytes(ENTRIES, distinct.numel())
    yield "Triton, a program a row", floor, milliseconds(apply)
    yield "torch index_add_, the merge alone", floor, milliseconds(merge)


PEERS = {
    "gather": gather,
    "sorted_event": lambda: event(spread(EVENT_ROWS), in_order=True),
    "parts_event": lambda: event(overlapping(EVENT_ROWS), in_order=False),
}
