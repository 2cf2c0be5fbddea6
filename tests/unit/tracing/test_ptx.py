"""Marks as inline PTX: where they store is where the reader looks."""

import re

import numpy as np
import pytest

from kernelci.tracing import ptx, records


def _stored(text: str) -> dict[int, str]:
    """What goes into a track's head, by offset."""
    found = re.findall(r"st\.global\.b\d+ \[(?:at|kernelci_track)(?:\+(\d+))?\], (\w+);", text)
    return {int(offset or 0): value for offset, value in found}


def _offsets(*names: str) -> set[int]:
    fields = np.dtype(records._TRACK).fields
    assert fields is not None
    return {int(fields[name][1]) for name in names}


def test_a_track_begins_where_the_reader_looks() -> None:
    expected = _offsets("begin", "timer_begin", "launch", "sm", "block", "warp", "state")
    assert expected == set(_stored(ptx.begin(0x1000)))


def test_a_track_ends_where_the_reader_looks() -> None:
    assert _offsets("end", "timer_end", "wanted", "state") == set(_stored(ptx.end()))


def test_states_are_the_readers() -> None:
    (at,) = _offsets("state")
    assert [str(records.BEGUN), str(records.ENDED)] == [_stored(text)[at] for text in (ptx.begin(1), ptx.end())]


@pytest.mark.parametrize(("region", "is_end", "word"), [(0, False, 0), (5, False, 5), (5, True, 5 | 1 << 31)])
def test_a_mark_is_a_record(region: int, is_end: bool, word: int) -> None:
    assert f"[at+{records.TRACK_BYTES}], {{low, high, {word}, kernelci_number}}" in ptx.mark(region, is_end)


def test_the_address_is_a_number() -> None:
    assert "mov.b64 header, 0x7f0012340000;" in ptx.begin(0x7F0012340000)


def test_registers_of_the_function_are_declared_once() -> None:
    names = re.findall(r"^\.reg \.b\d+ (kernelci_.*);$", ptx.begin(1), re.MULTILINE)
    assert ["kernelci_track", "kernelci_number, kernelci_room, kernelci_count"] == names
    assert not re.search(r"\.reg .*kernelci_", ptx.mark(0, False) + ptx.end())


def test_what_else_is_declared_stays_in_its_braces() -> None:
    for text in (ptx.begin(1), ptx.mark(1, True), ptx.end()):
        inner = text[text.index("\n{") if "\n{" in text else 0 :]
        assert inner.strip().startswith("{")
        assert inner.strip().endswith("}")
