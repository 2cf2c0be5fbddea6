"""What happened while a call was followed: on the host, and on the GPU. A candidate's claim, and bounded."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from kernelci.workbench.activity import MAX_NS, Printable

MAX_HAPPENINGS = 20_000
MAX_CALLS = 100  # that are followed together

# "call": the entry itself, "wait": the host until the device is done; "api": a function of CUDA's runtime or driver.
Kind = Literal["call", "wait", "api", "kernel", "memcpy", "memset"]
HOST = ("call", "wait", "api")
Moment = Annotated[int, Meta(ge=0, le=MAX_NS)]


class Happening(Struct, frozen=True, forbid_unknown_fields=True):
    """One of them. Times in ns since the first; host and GPU on one axis, as CUPTI brings them together.

    `name`: the function, the kernel's symbol, a copy's direction. `lane`: the stream on the GPU, on the host the
    thread, 0 being the one that calls. `correlation`: the same for an API call and the GPU work that it started; 0:
    none.
    """

    kind: Kind
    name: Printable
    start_ns: Moment
    end_ns: Moment
    lane: Annotated[int, Meta(ge=0, le=2**32 - 1)] = 0
    correlation: Annotated[int, Meta(ge=0, le=2**32 - 1)] = 0

    def __post_init__(self) -> None:
        """Raise ValueError for what can't be: a decoder refuses it then."""
        if self.end_ns < self.start_ns:
            raise ValueError("it ends before it begins")


Happenings = Annotated[tuple[Happening, ...], Meta(max_length=MAX_HAPPENINGS)]
