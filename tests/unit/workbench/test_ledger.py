"""What a ledger tells against a kernel, with made-up ledgers: deceptions B5, C5, E1 to E3, and honest look-alikes."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci.model import Metric
from kernelci.workbench.activity import Activity
from kernelci.workbench.ledger import Audited, judge, metrics
from kernelci.workbench.protocol import Ledger

CALLS = 16
OWN = "softmax_tile"
NVJET = "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NNT"
ATEN = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEE"
CUB = "_ZN3cub17CUB_200500_900_NS18DeviceReduceKernelE"
CUTE = "kernel_cutlass_softmax_in_registers_tensorptrf16gmemalign16o8i64div818_8_4_32_False_0"
CUTE_ELSEWHERE = "kernel_cutlass_softmax_in_registers_tensorptrf16gmemalign8o4i32_8_4_32_False_1"


def _line(name: str, count: int = 1, each_ns: float = 50_000.0, **more: object) -> Activity:
    fields = {"grid": (132, 1, 1), "block": (128, 1, 1), "stream": 7, "longest_ns": each_ns} | more
    return Activity("kernel", name, count=count, total_ns=count * each_ns, **fields)  # type: ignore[arg-type]


def _ledger(*lines: Activity) -> Ledger:
    total = sum(line.total_ns for line in lines)
    return Ledger(lines, total, total)


def _times(line: Activity, calls: int) -> Activity:
    return Activity(
        line.kind, line.name, line.grid, line.block, line.stream, line.count * calls, line.total_ns * calls,
        line.longest_ns, line.nodes * calls,
    )  # fmt: skip


def _judged(*lines: Activity, symbols: set[str] | None = None, **more: object) -> Audited:
    """The audit of a call of these lines, and of many equal ones."""
    many = _ledger(*(_times(line, CALLS) for line in lines))
    named = {OWN} if symbols is None else symbols
    return judge(_ledger(*lines), many, CALLS, many.busy_ns * 1.01, named, **more)  # type: ignore[arg-type]


def _said(audited: Audited) -> list[tuple[str, str]]:
    return [(finding.reason, finding.message) for finding in audited.findings]


def test_an_honest_kernel() -> None:
    found = _judged(_line(OWN))

    assert ((), 1.0, 50_000.0, 1, 1.0, 0.0) == (
        found.findings, found.kernels_per_call, found.time_ns, found.streams, found.own_share, found.library_share,
    )  # fmt: skip
    assert (OWN, "own", 1.0, 1.0) == tuple(getattr(found.shares[0], name) for name in found.shares[0].__struct_fields__)


def test_a_fall_back_to_torch() -> None:
    found = _judged(_line(NVJET))

    message = f"100 % of the time in libraries and copies; of it: 100 % {NVJET} (cuBLAS)"
    assert [("library-call", message)] == _said(found)
    assert ("cuBLAS",) == found.libraries


def test_a_decoy_beside_a_library() -> None:
    found = _judged(_line(OWN, each_ns=10_000), _line(ATEN, each_ns=90_000))

    message = "90 % of the time in libraries and copies; of it: 90 % at::native::vectorized_elementwise_kernel"
    assert [("library-call", f"{message} (ATen (PyTorch))")] == _said(found)


def test_a_library_cannot_be_claimed() -> None:
    found = _judged(_line(NVJET), symbols={NVJET})

    assert ["library-call"] == [finding.reason for finding in found.findings]


def test_a_kernel_that_nobody_knows_is_told_and_no_library() -> None:
    found = _judged(_line("somebody_elses_kernel"))

    note = "0 % of the time in kernels that the compile rung built; the rest: 100 % somebody_elses_kernel"
    assert ([], (note,)) == (_said(found), found.notes)


def test_a_copy_engine_is_no_kernel() -> None:
    found = _judged(Activity("memcpy", "DTOD", total_ns=90_000.0, longest_ns=90_000.0), _line(OWN, each_ns=10_000.0))

    message = "90 % of the time in libraries and copies; of it: 90 % DTOD (memory copies)"
    assert [("library-call", message)] == _said(found)


def test_nothing_ran() -> None:
    assert ["library-call"] == [finding.reason for finding in judge(Ledger(), Ledger(), CALLS, 1e6, {OWN}).findings]


@pytest.mark.parametrize(
    ("lines", "symbols"),
    [
        ((_line(CUTE),), {CUTE}),
        ((_line(CUTE_ELSEWHERE),), {CUTE}),  # specialised for other strides than the stand-ins had
        ((_line("softmax_tile_0d1d2de"),), {OWN}),
        ((_line("_Z12softmax_heldI7Float32Li4ELi2EEvPKT_"),), {"_Z12softmax_heldI8BFloat16Li8ELi4EEvPKT_"}),
        ((_line("x" * 200),), {"x" * 5000}),  # names are cut
        ((_line("kürzen".replace("ü", "?")),), {"kürzen"}),
        ((_line(CUB),), {CUB}),
        ((_line(OWN), _line(ATEN, each_ns=20_000)), {OWN}),  # zeroes a workspace with torch
        ((_line(OWN), Activity("memset", "", total_ns=9_000.0)), {OWN}),
        ((_line(OWN, stream=7), _line(OWN, stream=8)), {OWN}),  # a side stream, joined
        ((_line(OWN, count=3, each_ns=20_000.0), _line("reduce", each_ns=20_000.0)), {OWN, "reduce"}),
        ((_line("unknown_kernel"),), set()),  # the compile rung was skipped
        ((_line("_ZN7cutlass13device_kernelE"),), set()),
    ],
)  # fmt: skip
def test_honest_look_alikes(lines: tuple[Activity, ...], symbols: set[str]) -> None:
    assert [] == _said(_judged(*lines, symbols=symbols))


def test_without_symbols_a_library_still_shows() -> None:
    found = _judged(_line(NVJET), symbols=set())

    assert (None, 1.0) == (found.own_share, found.library_share)
    assert [("library-call", f"100 % of the time in libraries and copies; of it: 100 % {NVJET} (cuBLAS)")] == _said(
        found
    )


def test_many_calls_in_one_launch() -> None:
    one, many = _line(OWN), _line(OWN, each_ns=800_000.0, grid=(132 * CALLS, 1, 1))

    found = judge(_ledger(one), _ledger(many), CALLS, 8e5, {OWN})
    message = "softmax_tile, grid (132, 1, 1): 1 launches in one call, 0 in 16 calls (not 16)"
    assert [("ledger-count", message)] == _said(found)


def test_many_calls_in_one_of_many_launches() -> None:
    many = Activity("kernel", OWN, (132, 1, 1), (128, 1, 1), 7, CALLS, 815_000.0, longest_ns=800_000.0)

    found = judge(_ledger(_line(OWN)), _ledger(many), CALLS, 8.15e5, {OWN})
    assert [("ledger-count", "one of 16 launches of softmax_tile took 98 % of their time")] == _said(found)


def test_a_longest_launch_beyond_the_sum_is_one_that_does_it_all() -> None:
    many = Activity("kernel", OWN, (132, 1, 1), (128, 1, 1), 7, CALLS, 0.0, longest_ns=800_000.0)

    found = judge(Ledger((_line(OWN, each_ns=0.0),)), Ledger((many,)), CALLS, 1e3, {OWN})
    assert ("ledger-count", "one of 16 launches of softmax_tile took 100 % of their time") in _said(found)


def test_many_calls_that_do_less() -> None:
    found = judge(_ledger(_line(OWN)), _ledger(_line(OWN, CALLS, 5_000.0)), CALLS, 8e4, {OWN})

    assert [("ledger-count", "one call keeps the GPU busy for 50 µs, 16 calls for 80 µs")] == _said(found)


def test_a_short_kernel_may_start_slowly() -> None:
    many = _line(OWN, CALLS, 2_000.0)

    assert () == judge(_ledger(_line(OWN, each_ns=9_000.0)), _ledger(many), CALLS, 6e4, {OWN}).findings


def test_one_hiccup_is_forgiven() -> None:
    many = Activity("kernel", OWN, (132, 1, 1), (128, 1, 1), 7, CALLS, 110_000.0, longest_ns=80_000.0)

    assert () == judge(_ledger(_line(OWN, each_ns=2_000.0)), _ledger(many), CALLS, 1.1e5, {OWN}).findings


def test_a_window_may_be_off_by_what_its_own_cost_is_unsure_by() -> None:
    """Seen on an H200 whose host was busy: 10.1 ms in the ledger, 8.05 ms by the referee's clock less its overhead."""
    one, many = _ledger(_line(OWN)), _ledger(_line(OWN, CALLS))
    found = [judge(one, many, CALLS, 0.8 * many.busy_ns, {OWN}, unsure_ns=unsure) for unsure in (0.0, 2e5)]
    assert [["ledger-time"], []] == [[finding.reason for finding in audited.findings] for audited in found]


def test_lost_records() -> None:
    many = Ledger((_line(OWN, CALLS),), 8e5, 8e5, dropped=3)

    found = judge(_ledger(_line(OWN)), many, CALLS, 8e5, {OWN})
    assert [("ledger-count", "3 activities on the GPU were not recorded")] == _said(found)


@pytest.mark.parametrize(
    ("window_ns", "message"),
    [
        (7.0e5, "the ledger holds 800 µs of work, the referee waited 700 µs"),
        (
            1.2e6,
            "the ledger holds 800 µs of work, the referee waited 1.2 ms; recording 16 launches doesn't explain it",
        ),
    ],
)
def test_another_time_than_the_referees(window_ns: float, message: str) -> None:
    found = judge(_ledger(_line(OWN)), _ledger(_line(OWN, CALLS)), CALLS, window_ns, {OWN})

    assert [("ledger-time", message)] == _said(found)


@pytest.mark.parametrize("window_ns", [7.7e5, 8.0e5, 8.6e5])
def test_the_referees_time(window_ns: float) -> None:
    assert () == judge(_ledger(_line(OWN)), _ledger(_line(OWN, CALLS)), CALLS, window_ns, {OWN}).findings


def test_what_recording_a_window_costs_is_no_hidden_work() -> None:
    found = judge(_ledger(_line(OWN)), _ledger(_line(OWN, CALLS)), CALLS, 1.2e6, {OWN}, idle_ns=4e5)

    assert () == found.findings


def test_stamps_may_lengthen_a_tiny_kernel() -> None:
    many = _line(OWN, CALLS, 1_400.0)

    assert () == judge(_ledger(_line(OWN, each_ns=1_400.0)), _ledger(many), CALLS, CALLS * 1_100.0, {OWN}).findings


def test_nodes_of_graphs_are_counted() -> None:
    assert 2 * CALLS == _judged(_line(OWN, nodes=1), _line(ATEN, each_ns=1.0, nodes=1)).nodes


def test_calls_from_the_host_may_idle() -> None:
    found = judge(_ledger(_line(OWN)), _ledger(_line(OWN, CALLS)), CALLS, 1e9, {OWN}, gap_ns=math.inf)

    assert () == found.findings


def test_a_missing_ledger_is_a_note() -> None:
    found = judge(Ledger(missing="ModuleNotFoundError: No module named 'cupti'"), Ledger(), CALLS, 1.0, {OWN})

    text = "no ledger of the GPU's work: ModuleNotFoundError: No module named 'cupti'"
    assert Audited(notes=(text,)) == found
    assert () == metrics(found)


def test_a_missing_ledger_where_there_should_be_one() -> None:
    found = judge(Ledger(), Ledger(missing="none today"), CALLS, 1.0, {OWN}, expected=True)

    assert [("ledger-missing", "no ledger of the GPU's work: none today")] == _said(found)


def test_metrics() -> None:
    found = metrics(_judged(_line(OWN), _line(ATEN, each_ns=50_000.0 / 3)))

    expected = [("ledger_time", 66_667), ("kernels_per_call", 2), ("own_share", 0.75)]
    assert expected == [(metric.tag, _rounded(metric)) for metric in found]


def _rounded(metric: Metric) -> float:
    assert isinstance(metric.value, float)
    return round(metric.value, 2 if metric.value < 1 else None)


NAMES = st.sampled_from([OWN, NVJET, ATEN, CUTE, "", "_ZN3"]) | st.text(
    st.characters(min_codepoint=32, max_codepoint=126), max_size=200
)
TIMES = st.floats(0, 1e13)
EXTENTS = st.tuples(*[st.integers(0, 2**31 - 1)] * 3)
LINES = st.builds(
    Activity, st.sampled_from(["kernel", "memcpy", "memset", "rest"]), NAMES, EXTENTS, EXTENTS,
    st.integers(0, 2**32 - 1), st.integers(1, 10**9), TIMES, TIMES, st.integers(0, 10**9),
)  # fmt: skip
LEDGERS = st.builds(Ledger, st.lists(LINES, max_size=6).map(tuple), TIMES, TIMES, st.integers(0, 10**9))


@given(LEDGERS, LEDGERS, st.integers(1, 10_000), st.floats(0, 1e12), st.sets(st.sampled_from([OWN, CUTE, NVJET])))
def test_any_ledger_is_judged(one: Ledger, many: Ledger, calls: int, window_ns: float, symbols: set[str]) -> None:
    found = judge(one, many, calls, window_ns, symbols)

    assert 0.0 <= found.library_share <= 1.0 + 1e-9
    assert found.own_share is None or 0.0 <= found.own_share <= 1.0 + 1e-9
    assert all(metric.value >= 0.0 for metric in metrics(found) if isinstance(metric.value, float))


@given(st.lists(st.tuples(st.sampled_from([OWN, CUTE]), st.integers(1, 5)), min_size=1, max_size=4), st.integers(1, 99))
def test_as_many_times_one_call_is_never_a_wrong_count(kernels: list[tuple[str, int]], calls: int) -> None:
    lines = [_line(name, count, 30_000.0, grid=(number, 1, 1)) for number, (name, count) in enumerate(kernels, 1)]
    many = _ledger(*(_times(line, calls) for line in lines))

    assert () == judge(_ledger(*lines), many, calls, many.busy_ns, {OWN, CUTE}).findings
