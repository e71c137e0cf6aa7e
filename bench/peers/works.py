"""The works that are compared: sizes, floor bytes, goals, and our own cases.

Floor bytes are those that must be read and written, each once. A goal is a
ratio to the time in which the device copies them.
"""
import dataclasses
from typing import Optional

DIM = 768
ENTRIES = 393216  # Rows gathered, and entries of an event.
PARTS = 8
EVENT_ROWS = 10575360  # An eighth of the whole table.
WHOLE_ROWS = 84602880
VOCABULARY = 129280
HIDDEN = 7168
TOKENS = 8192
NGRAM_TOKENS = 49152


@dataclasses.dataclass(frozen=True)
class Work:
    key: str
    what: str
    ours: str  # The case of rowhouse_gpu_bench.
    must: Optional[float] = None
    ahead: Optional[float] = None


WORKS = (
    Work("gather", f"gather {ENTRIES:,} x {DIM} bf16 from {WHOLE_ROWS:,} rows",
         f"CudaGather/rows:{WHOLE_ROWS}", 1.08, 1.05),
    Work("sorted_event", f"event of {ENTRIES:,} entries in one sorted part, "
         f"{EVENT_ROWS:,} rows",
         f"CudaSortedEvent/rows:{EVENT_ROWS}", 1.15, 1.10),
    Work("parts_event", f"event of {PARTS} parts of {ENTRIES // PARTS:,} "
         f"entries with overlaps, {EVENT_ROWS:,} rows",
         f"CudaEventOfEightParts/rows:{EVENT_ROWS}", 1.40, 1.25),
    Work("gradient_even", f"embedding gradient {VOCABULARY:,} x {HIDDEN:,}, "
         f"{TOKENS:,} tokens, uniform",
         "CudaEmbeddingGradient/spread:0", 1.40, 1.20),
    Work("gradient_zipf", "the same, Zipf",
         "CudaEmbeddingGradient/spread:1", 1.40, 1.20),
    Work("gradient_one_row", "the same, all tokens on one row",
         "CudaEmbeddingGradient/spread:3"),
    Work("ngram_embed", f"n-gram embed forward + backward, {NGRAM_TOKENS:,} "
         f"tokens x {DIM}", "CudaNgramForwardAndBackward", 1.25, 1.10),
)


def gather_bytes():
    return ENTRIES * 2 * 2 * DIM


def event_bytes(entries, rows):
    return entries * 2 * DIM + rows * (4 * DIM + 16)


def gradient_bytes(rows):
    return TOKENS * 2 * HIDDEN + rows * 8 * HIDDEN


def ngram_bytes():
    return NGRAM_TOKENS * 12 * DIM
