"""The untrusted side of the ledger: sums and bounds; and what it says where CUPTI can't work."""

import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci.workbench import activity, protocol
from kernelci.workbench.activity import Activity
from kernelci.workbench.protocol import Ledger
from kernelci.workbench.recorder import Record, Recorder, Tally

NONE = (0, 0, 0)
EXTENTS = st.tuples(*[st.integers(0, 2**40)] * 3)
RECORDS = st.builds(
    Record,
    st.sampled_from(["kernel", "memcpy", "memset"]),
    st.text(max_size=300),
    EXTENTS,
    EXTENTS,
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**63),
    st.integers(0, 10**18),
    st.integers(0, 10**18),
)


def _kernel(start: int, end: int, name: str = "k", stream: int = 7, node: int = 0) -> Record:
    return Record("kernel", name, (4, 1, 1), (128, 1, 1), stream, node, start, end)


def _ledger(*records: Record) -> Ledger:
    tally = Tally()
    for record in records:
        tally.add(record)
    return tally.ledger()


def test_equal_launches_are_one_line() -> None:
    found = _ledger(_kernel(100, 110, node=3), _kernel(200, 230, node=4))

    line = Activity("kernel", "k", (4, 1, 1), (128, 1, 1), 7, count=2, total_ns=40.0, longest_ns=30.0, nodes=2)
    assert Ledger((line,), busy_ns=40.0, span_ns=130.0) == found


def test_another_name_or_stream_is_another_line() -> None:
    found = _ledger(_kernel(1, 2), _kernel(3, 4, name="l"), _kernel(5, 6, stream=8))

    assert [("k", 7), ("l", 7), ("k", 8)] == [(line.name, line.stream) for line in found.activities]


@pytest.mark.parametrize(
    ("times", "busy", "span"),
    [
        ([(10, 20), (15, 30)], 20, 20),  # two streams
        ([(10, 50), (20, 30), (60, 70)], 50, 60),
        ([(60, 70), (10, 50)], 50, 60),
        ([], 0, 0),
    ],
)
def test_overlaps_count_once(times: list[tuple[int, int]], busy: int, span: int) -> None:
    found = _ledger(*(_kernel(start, end, stream=number) for number, (start, end) in enumerate(times)))

    assert (busy, span) == (found.busy_ns, found.span_ns)


@pytest.mark.parametrize("times", [(0, 0), (0, 5), (9, 3)])
def test_a_record_without_times_is_dropped(times: tuple[int, int]) -> None:
    assert Ledger(dropped=1) == _ledger(_kernel(*times))


def test_only_so_many_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelci.workbench.recorder.MAX_RECORDS", 3)

    found = _ledger(*(_kernel(number, number + 1) for number in range(1, 6)))
    assert (3, 2) == (found.activities[0].count, found.dropped)


def test_what_has_no_line_any_more_is_summed() -> None:
    found = _ledger(*(_kernel(number, number + 1, name=f"k{number}") for number in range(1, activity.MAX_LINES + 10)))

    assert activity.MAX_LINES == len(found.activities)
    assert ("rest", 10) == (found.activities[-1].kind, found.activities[-1].count)


@given(st.lists(RECORDS, max_size=20))
def test_every_ledger_passes_the_strict_decoder(records: list[Record]) -> None:
    found = _ledger(*records)

    decoded = msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=protocol.FromCandidate)
    assert found == decoded
    assert len(records) == found.dropped + sum(line.count for line in found.activities)
    assert found.busy_ns <= found.span_ns


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "a\x1b[31m"},
        {"name": "a\n"},
        {"name": "ä"},
        {"name": "a" * 201},
        {"count": 0},
        {"count": 10**10},
        {"total_ns": -1.0},
        {"total_ns": float("nan")},
        {"longest_ns": float("inf")},
        {"grid": (-1, 1, 1)},
        {"grid": (1, 1)},
        {"stream": -1},
        {"kind": "library"},
        {"surprise": 1},
    ],
)
def test_what_a_line_may_not_say(changed: dict[str, object]) -> None:
    line = {"kind": "kernel", "name": "k"} | changed
    document = msgspec.msgpack.encode({"type": "Ledger", "activities": [line]})

    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(document, type=protocol.FromCandidate)


def test_too_many_lines_are_refused() -> None:
    found = Ledger(tuple(Activity("kernel", f"k{number}") for number in range(activity.MAX_LINES + 1)))

    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=protocol.FromCandidate)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupti", None)

    recorder = Recorder("cuda:0")
    recorder.start()
    found = recorder.stop()
    recorder.close()
    assert found.missing.startswith("ModuleNotFoundError: ")


@pytest.mark.gpu
def test_what_a_gpu_did() -> None:
    import torch

    pytest.importorskip("cupti")
    values = torch.ones(2**20, device="cuda:0")
    recorder = Recorder("cuda:0")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        values.add_(1.0)
        values.mul_(2.0)
    recorder.start()
    for _ in range(5):
        graph.replay()
    found = recorder.stop()
    recorder.close()

    assert "" == found.missing
    assert 10 == sum(line.count for line in found.activities)
    assert 0.0 < found.busy_ns <= found.span_ns
