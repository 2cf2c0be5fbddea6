"""Where a profiler around this process is to look (the untrusted side)."""

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def looked_at(device: str) -> Iterator[None]:
    """Within this a profiler that waits for its range records what the GPU does; on the CPU there is none."""
    if device == "cpu":
        yield
        return
    from torch.cuda import profiler

    profiler.start()
    try:
        yield
    finally:
        profiler.stop()
