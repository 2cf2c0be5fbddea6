"""One line of a ledger: what a candidate's process saw on the GPU, summed over equal launches. A claim, and bounded."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

MAX_RECORDS = 100_000  # single launches and copies that a recorder keeps
MAX_LINES = 2_000
MAX_NAME = 200
MAX_NS = 10**13  # three hours

Kind = Literal["kernel", "memcpy", "memset", "rest"]
# Printable ASCII: a name can bend neither a terminal nor a page.
Printable = Annotated[str, Meta(max_length=MAX_NAME, pattern=r"^[\x20-\x7e]*\Z")]
Said = Annotated[str, Meta(max_length=1000, pattern=r"^[\x20-\x7e]*\Z")]
Extent = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Count = Annotated[int, Meta(ge=0, le=10**9)]
Nanoseconds = Annotated[float, Meta(ge=0.0, le=MAX_NS)]  # NaN is refused too, since it is not >= 0


class Activity(Struct, frozen=True, forbid_unknown_fields=True):
    """Equal launches of a kernel, or copies or fills of memory; "rest" sums what had no line any more.

    `name` is the symbol as the driver knows it (mangled), cut to 200 characters; for a copy, its direction.
    `grid` in blocks and `block` in threads, zeros where there is none. `longest_ns` is the longest of the `count`.
    `nodes`: how many different nodes of CUDA graphs they were; 0 outside of graphs.
    """

    kind: Kind
    name: Printable
    grid: tuple[Extent, Extent, Extent] = (0, 0, 0)
    block: tuple[Extent, Extent, Extent] = (0, 0, 0)
    stream: Annotated[int, Meta(ge=0, le=2**32 - 1)] = 0
    count: Annotated[int, Meta(ge=1, le=10**9)] = 1
    total_ns: Nanoseconds = 0.0
    longest_ns: Nanoseconds = 0.0
    nodes: Count = 0


Activities = Annotated[tuple[Activity, ...], Meta(max_length=MAX_LINES)]


def printable(text: str, length: int = MAX_NAME) -> str:
    """Text cut to `length`, with "?" for what is not printable ASCII."""
    return "".join(sign if " " <= sign <= "~" else "?" for sign in text[:length])
