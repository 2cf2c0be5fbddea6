"""A call's timeline on the untrusted side: CUPTI's own records become happenings, bounded and on one axis."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci.workbench import chronicle, protocol
from kernelci.workbench.chronicle import Chronicle, plain
from kernelci.workbench.happening import MAX_CALLS, MAX_HAPPENINGS, Happening
from kernelci.workbench.protocol import Call, Follow, Followed
from kernelci.workbench.recorder import Record, Recorder

from .conftest import MakeSession

cupti = pytest.importorskip("cupti.cupti", reason="cupti-python is an extra")
TIMES = st.integers(-(2**62), 2**62)


def _api(kind: str, function: int, start: int, end: int, thread: int = 5, correlation: int = 0) -> Any:
    """A record of CUPTI's own class, as its callback gets it."""
    found = cupti.ActivityAPI()
    found.kind, found.cbid = getattr(cupti.ActivityKind, kind), function
    found.start, found.end, found.thread_id, found.correlation_id = start, end, thread, correlation
    return found


def _record(start: int, end: int, name: str = "k") -> Record:
    return Record("kernel", name, (1, 1, 1), (32, 1, 1), 7, 0, start, end)


def _kernel(correlation: int) -> Any:
    found = cupti.ActivityKernel10()
    found.kind, found.correlation_id = cupti.ActivityKind.CONCURRENT_KERNEL, correlation
    return found


def test_functions_and_work_on_one_axis() -> None:
    made = Chronicle(cupti, lambda activity: _record(1100, 1600))
    made.mark("call", "call 0", 1000, 1080)
    made.take(_api("RUNTIME", int(cupti.RuntimeApiTraceCbid.cudaLaunchKernel_v7000), 1010, 1020, correlation=3))
    made.take(_api("DRIVER", int(cupti.DriverApiTraceCbid.cuLaunchKernelEx), 1030, 1040, thread=6, correlation=4))
    made.take(_kernel(4))

    expected = (
        Happening("call", "call 0", 0, 80),
        Happening("api", "cudaLaunchKernel", 10, 20, lane=1, correlation=3),
        Happening("api", "cuLaunchKernelEx", 30, 40, lane=2, correlation=4),
        Happening("kernel", "k", 100, 600, lane=7, correlation=4),
    )
    assert Followed(expected) == made.told()


def test_the_calling_thread_is_lane_0() -> None:
    made = Chronicle(cupti, lambda activity: _record(1, 2))
    made.take(_api("RUNTIME", 13, 10, 20, thread=chronicle._identity()))
    assert [0] == [each.lane for each in made.told().happenings]


def test_a_function_that_this_cupti_does_not_know() -> None:
    made = Chronicle(cupti, lambda activity: _record(1, 2))
    made.take(_api("DRIVER", 999_999, 10, 20))
    assert ["driver function 999999"] == [each.name for each in made.told().happenings]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
        ("cudaLaunchKernel_ptsz_v7000", "cudaLaunchKernel"),
        ("cuMemcpyHtoD_v2_ptds", "cuMemcpyHtoD"),
        ("cuLaunchKernel", "cuLaunchKernel"),
    ],
)
def test_a_function_without_its_version(name: str, expected: str) -> None:
    assert expected == plain(name)


@pytest.mark.parametrize("times", [(0, 5), (9, 3), (-4, 2)])
def test_a_record_without_times_is_dropped(times: tuple[int, int]) -> None:
    made = Chronicle(cupti, lambda activity: _record(1, 2))
    made.mark("call", "call 0", *times)
    assert Followed(dropped=1) == made.told()


def test_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chronicle, "MAX_HAPPENINGS", 3)
    made = Chronicle(cupti, lambda activity: _record(1, 2))
    for number in range(1, 6):
        made.mark("call", "call", number, number + 1)

    found = made.told(lost=10)
    assert (3, 12) == (len(found.happenings), found.dropped)


@given(st.lists(st.tuples(st.text(max_size=300), TIMES, TIMES, st.integers(0, 2**40)), max_size=20))
def test_every_answer_passes_the_strict_decoder(records: list[tuple[str, int, int, int]]) -> None:
    made = Chronicle(cupti, lambda activity: _record(1, 2))
    for name, start, end, lane in records:
        made._add("kernel", name, start, end, lane, lane)

    found = made.told()
    decoded = msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=protocol.FromCandidate)
    assert found == decoded
    assert len(records) == found.dropped + len(found.happenings)


@pytest.mark.parametrize(
    "changed",
    [
        {"kind": "nap"},
        {"name": "a\n"},
        {"name": "a" * 201},
        {"start_ns": -1},
        {"start_ns": 3},
        {"end_ns": 10**14},
        {"lane": 2**32},
        {"correlation": -1},
        {"start_ns": 1.5},
        {"surprise": 1},
    ],
)
def test_what_a_happening_may_not_say(changed: dict[str, object]) -> None:
    one = {"kind": "kernel", "name": "k", "start_ns": 1, "end_ns": 2} | changed
    document = msgspec.msgpack.encode({"type": "Followed", "happenings": [one]})

    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(document, type=protocol.FromCandidate)


def test_too_many_are_refused() -> None:
    document = msgspec.msgpack.encode(Followed((Happening("kernel", "k", 1, 2),) * (MAX_HAPPENINGS + 1)))
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(document, type=protocol.FromCandidate)


@pytest.mark.parametrize("calls", [0, MAX_CALLS + 1])
def test_calls_are_bounded(calls: int) -> None:
    document = msgspec.msgpack.encode(Follow(Call({}, {}, {}), calls))
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(document, type=protocol.ToCandidate)


def test_a_candidate_that_records_nothing_says_so(session: MakeSession) -> None:
    found = session("def f():\n    pass\n").follow(Call({}, {}, {}), 2)
    assert Followed(missing="nothing was to be recorded") == found


@pytest.mark.gpu
def test_what_host_and_gpu_did() -> None:
    import torch

    values = torch.ones(2**20, device="cuda:0")
    recorder = Recorder("cuda:0")
    if recorder.missing:
        pytest.skip(recorder.missing)

    def run() -> None:
        values.add_(1.0)
        values.mul_(2.0)

    run()
    found = recorder.follow(run, 3)
    recorder.close()
    kinds = [each.kind for each in found.happenings]
    assert (3, 3, 6) == tuple(kinds.count(kind) for kind in ("call", "wait", "kernel"))
    started = {each.correlation for each in found.happenings if each.kind == "api"}
    assert {each.correlation for each in found.happenings if each.kind == "kernel"} <= started
