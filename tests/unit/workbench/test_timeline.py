"""Where a call's time goes between host and GPU: the figures, and the tracks of a viewer."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kernelci.tracing.validating import faults
from kernelci.workbench import timeline
from kernelci.workbench.happening import Happening
from kernelci.workbench.protocol import Followed
from kernelci.workbench.timeline import CallTimes, Gap

KINDS = ["call", "wait", "api", "kernel", "memcpy", "memset"]
TIME = st.integers(0, 10**13)
HAPPENINGS = st.builds(
    lambda kind, name, start, length, lane, number: Happening(kind, name, start, start + length, lane, number),
    st.sampled_from(KINDS),
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20),
    TIME,
    st.integers(0, 10**6),
    st.integers(0, 2**32 - 1),
    st.integers(0, 5),
)


def _call(at: int, scale: int = 1) -> list[Happening]:
    """A call that launches two kernels: the host is 30 long, the GPU works 10 to 25 and 40 to 60."""
    spans = [
        ("call", "call", 0, 30, 0, 0),
        ("api", "cudaLaunchKernel", 5, 8, 0, 1),
        ("api", "cudaLaunchKernel", 20, 24, 0, 2),
        ("kernel", "_ZN2at6native3addEv", 10, 25, 7, 1),
        ("kernel", "softmax", 40, 60, 7, 2),
        ("wait", "wait", 30, 70, 0, 0),
        ("api", "cudaDeviceSynchronize", 31, 69, 0, 3),
    ]
    return [
        Happening(kind, name, at + start * scale, at + end * scale, lane, number + at if number else 0)  # type: ignore[arg-type]
        for kind, name, start, end, lane, number in spans
    ]


def test_figures_of_a_call() -> None:
    found = timeline.call_times(Followed(tuple(_call(0))))

    expected = CallTimes(1, 60, 30, 35, 7, 12.5, 2, gaps=(Gap(15, "softmax"),))
    assert expected == found
    assert 1 - 35 / 60 == found.idle_share


def test_of_several_calls_the_median_one() -> None:
    calls = [*_call(0, 5), *_call(1000, 2), *_call(2000, 3)]
    assert (3, 180) == (
        timeline.call_times(Followed(tuple(calls))).calls,
        timeline.call_times(Followed(tuple(calls))).call_ns,
    )


def test_works_that_overlap_leave_no_gap() -> None:
    works = [Happening("call", "c", 0, 5), Happening("kernel", "a", 5, 30), Happening("kernel", "b", 10, 20, lane=1)]
    found = timeline.call_times(Followed((*works, Happening("memset", "", 28, 40), Happening("wait", "w", 5, 50))))
    assert ((), 35, 40) == (found.gaps, found.busy_ns, found.call_ns)


def test_functions_of_other_threads_are_not_the_calls() -> None:
    call = [Happening("call", "c", 0, 50), Happening("api", "cuX", 5, 9, lane=1), Happening("wait", "w", 50, 60)]
    assert 0 == timeline.call_times(Followed(tuple(call))).api_ns


@pytest.mark.parametrize(
    ("followed", "note"),
    [
        (Followed(missing="no CUPTI"), "no timeline of the host: no CUPTI"),
        (Followed(), "no timeline of the host: no call was recorded"),
    ],
)
def test_nothing_is_told(followed: Followed, note: str) -> None:
    found = timeline.call_times(followed)
    assert ((), [note]) == (timeline.metrics(found), list(timeline.told(found)))


def test_what_a_row_shows() -> None:
    found = timeline.call_times(Followed(tuple(_call(0, 1000)), dropped=4))

    assert {"host_call": 60_000, "host_share": 1 - 35 / 60, "launch_gap": 15_000, "launch_latency": 12_500}.items() <= {
        metric.tag: metric.value for metric in timeline.metrics(found)
    }.items()
    assert [
        "4 records of the host's timeline were lost",
        "from the host a call takes 60 µs: 30 µs of host code, 7 µs of it in CUDA's API; the GPU works for 35 µs",
        "the GPU idles 15 µs before softmax",
    ] == list(timeline.told(found))


@pytest.mark.parametrize(("early", "moved"), [(12, 7), (-25, -15)])
def test_works_on_another_clock_are_the_calls_all_the_same(early: int, moved: int) -> None:
    """They would begin before their launch, or end after the wait for them."""
    works = [
        replace(each, start_ns=each.start_ns - early, end_ns=each.end_ns - early)
        for each in _call(100)
        if each.kind == "kernel"
    ]
    host = [each for each in _call(100) if each.kind != "kernel"]
    followed = Followed((*host, *works))

    found = timeline.call_times(followed)
    assert (2, 35, abs(moved), None) == (found.launches, found.busy_ns, found.apart_ns, found.launch_ns)
    assert "CUPTI has the clocks of host and GPU up to" in list(timeline.told(found))[1]
    events = timeline.events(followed)
    assert ["s", "f", "s", "f"] == [event["ph"] for event in events if event.get("name") == "launch"]


def test_a_work_of_the_next_call_by_its_own_time_is_that_of_its_launch() -> None:
    late = [replace(each, start_ns=each.start_ns + 50, end_ns=each.end_ns + 50) if each.kind == "kernel" else each
            for each in _call(0)]  # fmt: skip
    found = timeline.call_times(Followed((*late, *_call(100), *_call(200))))
    assert (3, 2, 60) == (found.calls, found.launches, found.call_ns)


def _file(followed: Followed) -> bytes:
    return msgspec.json.encode({"traceEvents": timeline.events(followed)})


def test_tracks_of_host_and_gpu_with_arrows() -> None:
    found = timeline.events(Followed(tuple(_call(0))))

    names = [event["args"]["name"] for event in found if event["ph"] == "M" and "name" in event["args"]]
    assert ["host (other calls than the traced ones)", "GPU as the host sees it", "thread 0", "stream 7"] == names
    kernel = next(event for event in found if event.get("name") == "at::native::add" and event["ph"] == "X")
    assert (0.01, 0.015, timeline.GPU_PROCESS) == (kernel["ts"], kernel["dur"], kernel["pid"])
    assert ["s", "f", "s", "f"] == [event["ph"] for event in found if event.get("name") == "launch"]
    assert [] == faults(_file(Followed(tuple(_call(0)))))


def test_works_of_one_stream_that_overlap_get_a_row_of_their_own() -> None:
    works = (Happening("kernel", "a", 5, 30, lane=7), Happening("kernel", "b", 20, 40, lane=7))
    found = timeline.events(Followed(works))
    assert ["stream 7", "stream 7, row 1"] == [each["args"]["name"] for each in found if each["name"] == "thread_name"]
    assert [] == faults(_file(Followed(works)))


def test_nothing_leaves_no_tracks() -> None:
    assert [] == timeline.events(Followed(missing="no CUPTI"))


@given(st.lists(HAPPENINGS, max_size=30), st.integers(0, 10**9))
def test_whatever_a_candidate_says_gives_figures_and_a_file(happenings: list[Happening], dropped: int) -> None:
    followed = Followed(tuple(happenings), dropped)

    found = timeline.call_times(followed)
    assert 0 <= found.idle_share <= 1
    assert len(timeline.metrics(found)) == ((4 + (found.launch_ns is not None)) if found.calls else 0)
    assert all(gap.length_ns > 0 for gap in found.gaps)
    assert [] == faults(_file(followed))
