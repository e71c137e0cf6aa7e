"""Times on the device, as our own benchmarks take them: batches of calls one
behind another, so that a call's launch hides behind the one before."""
import statistics

import torch

CALLS_AT_ONCE = 8
BATCHES = 11


def milliseconds(call):
    """The median over batches of the time of one call."""
    call()  # Compiles and warms up.
    times = []
    for _ in range(BATCHES):
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        start.record()
        for _ in range(CALLS_AT_ONCE):
            call()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / CALLS_AT_ONCE)
    return statistics.median(times)


def copy_rate():
    """Bytes read and written a second by a copy within the device."""
    size = 2 << 30
    source = torch.empty(size, dtype=torch.uint8, device="cuda").fill_(1)
    to = torch.empty_like(source)
    return 2 * size / (milliseconds(lambda: to.copy_(source)) * 1e-3)
