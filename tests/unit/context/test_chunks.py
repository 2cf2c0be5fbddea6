"""Chunks follow the structure of what they are cut from, and know their lines."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci.context import chunks
from kernelci.context.chunks import MAX_BODY, Chunk

PYTHON = '''"""Module words."""
LIMIT = 3

@overload
def f(a): ...

@decorated
def f(a, *, loc=None):
    """What f does."""
    return a

class SharedStorage(Base):
    """Holds tiles."""
    size = 4

    @property
    def x(self):
        """The x."""

    @x.setter
    def x(self, value): pass

if True:
    async def g(): pass
'''


def _found(path: str, text: str) -> dict[str, Chunk]:
    return {chunk.symbol: chunk for chunk in chunks.of(path, text)}


def test_python_definitions_with_their_lines() -> None:
    found = _found("a.py", PYTHON)
    lines = {symbol: (chunk.kind, chunk.first, chunk.last) for symbol, chunk in found.items() if symbol}
    expected = {
        "f": ("function", 7, 10),
        "SharedStorage": ("class", 12, 21),
        "SharedStorage.x": ("method", 16, 18),
        "g": ("function", 24, 24),
    }
    assert expected == lines


def test_python_says_what_a_definition_is_for() -> None:
    found = _found("a.py", PYTHON)
    assert ("def f(a)", "What f does.") == (found["f"].title, found["f"].doc)
    assert ("class SharedStorage(Base)", "x size") == (found["SharedStorage"].title, found["SharedStorage"].names)


def test_python_module() -> None:
    module = _found("a.py", PYTHON)[""]
    assert ("module", "Module words.", "LIMIT") == (module.kind, module.doc, module.names)


def test_python_that_does_not_parse_is_still_found() -> None:
    (chunk,) = chunks.of("a.py", "print 'old'\n")
    assert ("text", "print 'old'") == (chunk.kind, chunk.body)


def test_long_function_goes_on_under_its_symbol() -> None:
    body = "\n".join(f"    x{index} = '{'y' * 90}'" for index in range(200))
    found = [chunk for chunk in chunks.of("a.py", f"def f():\n{body}\n") if chunk.symbol == "f"]
    assert ["function", *["part"] * (len(found) - 1)] == [chunk.kind for chunk in found]
    assert (True, True) == (len(found) > 2, all(len(chunk.body) <= MAX_BODY for chunk in found))


PTX = """// generated
/*
// mbarrier.init.shared::cta.b64 [addr], count; // PTX ISA 70, SM_80
template <typename = void>
__device__ void mbarrier_init(
  uint64_t* addr,
  const uint32_t& count);
*/
#if __cccl_ptx_isa >= 700
template <typename = void>
_CCCL_DEVICE_API void mbarrier_init(::cuda::std::uint64_t* __addr)
{
  asm("mbarrier.init.shared::cta.b64 [%0], %1;");
}
#endif
"""


def test_ptx_wrappers() -> None:
    instruction, variant = chunks.of("x/mbarrier_init.h", PTX)
    assert ("instruction", "mbarrier_init", 1) == (instruction.kind, instruction.symbol, instruction.first)
    assert ("PTX mbarrier.init.shared::cta.b64", True) == (
        instruction.title,
        "expected arrival count" in instruction.doc,
    )
    assert ("variant", "mbarrier_init", 2, 15) == (variant.kind, variant.symbol, variant.first, variant.last)


HEADER = """#pragma once
namespace cuda {

/// Adds two halves.
__device__ __half2 __hadd2(const __half2 a, const __half2 b);

#define WARP_SIZE 32

template <class T>
struct Barrier
{
  void wait();

  T state;
};

}
"""


def test_header_declarations() -> None:
    found = _found("a.h", HEADER)
    lines = {symbol: (chunk.first, chunk.last) for symbol, chunk in found.items()}
    assert {"__hadd2": (4, 5), "WARP_SIZE": (7, 7), "Barrier": (9, 15)} == {
        s: lines[s] for s in ("__hadd2", "WARP_SIZE", "Barrier")
    }
    assert "Adds two halves." == found["__hadd2"].doc


@pytest.mark.parametrize(
    "text",
    [
        "# One\nbody\n## Two\nmore\n```\n# no heading\n```\n# Three\n",
        "One\n===\nbody\n\nTwo\n---\nmore\n# no\n\nThree\n=====\n",
    ],
    ids=["markdown", "rst"],
)
def test_sections(text: str) -> None:
    titles = [chunk.title for chunk in chunks.of("a.md", text) if "no" not in chunk.symbol.split()]
    assert ["One", "One › Two", "Three"] == titles


@given(st.text(max_size=400), st.sampled_from(["a.py", "a.h", "a.md", "a.txt", "mbarrier.h"]))
def test_any_text_has_chunks_within_its_lines(text: str, path: str) -> None:
    count = len(text.splitlines()) + 1
    assert all(1 <= chunk.first <= chunk.last <= count for chunk in chunks.of(path, text))


HOSTILE = {
    "comments that begin and never end": ("a.h", "/*\n// x; // PTX ISA 80\n" * 60_000),
    "comments within a line": ("a.h", "/*" * 200_000),
    "templates that never end": ("a.h", "template <" * 100_000 + "int f();"),
    "deep brackets": ("a.py", "x = " + "(" * 50_000),
    "long chain": ("a.py", "class A(" + ".".join(["a"] * 20_000) + "): ...\n"),
    "headings only": ("a.md", "# a\n" * 50_000),
    "blank lines": ("a.h", "\n" * 500_000),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_takes_no_longer_than_its_length(name: str) -> None:
    path, text = HOSTILE[name]
    began = time.process_time()
    found = sum(1 for _ in chunks.of(path, text))
    assert (True, True) == (found <= text.count("\n") + 1, time.process_time() - began < 5.0)
