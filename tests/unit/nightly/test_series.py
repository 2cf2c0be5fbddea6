"""A history read back."""

import datetime
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from kernelci import history
from kernelci.errors import ReportError
from kernelci.history import Event, Measure
from kernelci.nightly.series import KEY, events, load
from kernelci.reasons import Outcome


def _written(folder: Path, files: Iterable[tuple[str, bytes]]) -> Path:
    for path, data in files:
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    return folder


def test_an_empty_history_has_no_series(tmp_path: Path) -> None:
    assert ((), ()) == (load(tmp_path), events(tmp_path))


def test_nights_come_in_order_and_series_by_kernel_case_and_gpu(measure, tmp_path: Path) -> None:
    made = [
        [measure(night, 1000.0 + night), measure(night, 5.0, case="d"), measure(night, gpu="A100")]
        for night in (2, 0, 1)
    ]
    _written(tmp_path, map(history.night_file, made))

    found = load(tmp_path)

    assert [("softmax/a", "c", "A100"), ("softmax/a", "c", "NVIDIA H200"), ("softmax/a", "d", "NVIDIA H200")] == [
        each.id for each in found
    ]
    assert (1000.0, 1001.0, 1002.0) == found[1].time_ns


def test_every_field_that_a_series_has_comes_back(measure, tmp_path: Path) -> None:
    numbers = ("low_ns", "high_ns", "end_to_end_ns", "of_ceiling", "bandwidth", "flops", "psnr_db", "copy", "matmul")
    numbers += ("registers", "stack_bytes", "shared_bytes", "code_bytes", "compile_s", "error_ratio")
    values = {name: float(place) for place, name in enumerate(numbers)}
    record = measure(0, 7.0, run="r", gpu_uuid="u", source="s", reason="q", **values)
    _written(tmp_path, [history.night_file([record])])

    (found,) = load(tmp_path)

    assert values == {name: getattr(found, name)[0] for name in numbers}
    assert ("r", "u", "s", "q", "PASSED", record.commit) == (
        found.runs[0], found.uuids[0], found.sources[0], found.reasons[0], found.outcomes[0], found.commits[0],
    )  # fmt: skip


def test_of_two_climbs_of_one_night_the_later_counts(measure, tmp_path: Path) -> None:
    first, second = measure(0, 1.0), msgspec.structs.replace(measure(0, 2.0), started="2026-01-01T05:00:00+00:00")
    _written(tmp_path, [history.night_file([second]), history.night_file([first])])

    assert (2.0,) == load(tmp_path)[0].time_ns


def test_another_driver_starts_a_segment(measure, tmp_path: Path) -> None:
    made = [measure(0), measure(1), measure(2, driver="590"), measure(3, driver="590")]
    _written(tmp_path, (history.night_file([each]) for each in made))

    (found,) = load(tmp_path)

    assert ((0, 0, 1, 1), ("580", "590"), (2, 3)) == (
        found.segments, tuple(key.driver for key in found.keys), found.current,
    )  # fmt: skip


@pytest.mark.parametrize("part", KEY)
def test_every_part_of_the_key_starts_a_segment(part: str, measure, tmp_path: Path) -> None:
    made = [measure(0), measure(1, **{part: "another"})]
    _written(tmp_path, (history.night_file([each]) for each in made))

    assert [(0, 1)] == [each.segments for each in load(tmp_path)]


def test_nights_without_a_gpu_are_a_series_for_each_target(measure, tmp_path: Path) -> None:
    made = [measure(night, None, gpu="", target=target) for night in (0, 1) for target in ("sm_80", "sm_90a")]
    _written(tmp_path, [history.night_file(made[:2]), history.night_file(made[2:])])

    assert [("no GPU: sm_80", 2, ()), ("no GPU: sm_90a", 2, ())] == [
        (each.gpu, len(each.nights), each.current) for each in load(tmp_path)
    ]


def _stopped(measure, night: int, **more: str) -> Measure:
    made = measure(night, None, case="", **more)
    return msgspec.structs.replace(made, outcome=Outcome.FAILED, reason="syntax-error")


def test_a_kernel_that_stops_early_has_that_night_in_all_its_last_cases(measure, tmp_path: Path) -> None:
    made = [measure(0, case="gone"), *(measure(night, case=case) for night in (1, 2) for case in "cd")]
    _written(tmp_path, (history.night_file([each]) for each in [*made, _stopped(measure, 3), _stopped(measure, 0)]))

    assert {"gone": ("PASSED",), "c": ("PASSED", "PASSED", "FAILED"), "d": ("PASSED", "PASSED", "FAILED")} == {
        each.case: each.outcomes for each in load(tmp_path)
    }


def test_it_stops_on_each_target_where_there_is_no_gpu(measure, tmp_path: Path) -> None:
    made = [measure(0, None, gpu="", target=target) for target in ("sm_80", "sm_90a")]
    _written(tmp_path, (history.night_file([each]) for each in [*made, _stopped(measure, 1, gpu="")]))

    assert [("c", "no GPU: sm_80", 2), ("c", "no GPU: sm_90a", 2)] == [
        (each.case, each.gpu, len(each.nights)) for each in load(tmp_path)
    ]


def test_a_kernel_that_never_got_so_far_is_a_series_without_a_case(measure, tmp_path: Path) -> None:
    _written(tmp_path, (history.night_file([each]) for each in [_stopped(measure, 0), _stopped(measure, 1, gpu="")]))

    assert [("", "NVIDIA H200", ("FAILED",)), ("", "no GPU", ("FAILED",))] == [
        (each.case, each.gpu, each.outcomes) for each in load(tmp_path)
    ]


def test_a_second_climb_that_got_further_counts(measure, tmp_path: Path) -> None:
    again = msgspec.structs.replace(measure(1, 7.0), started="2026-01-02T05:00:00+00:00")
    _written(tmp_path, (history.night_file([each]) for each in [measure(0), _stopped(measure, 1), again]))

    assert [(1000.0, 7.0)] == [each.time_ns for each in load(tmp_path)]


def test_a_night_without_a_time_is_there_and_not_current(measure, tmp_path: Path) -> None:
    invalid = msgspec.structs.replace(measure(1, None), outcome=Outcome.INVALID, reason="clocks-disagree")
    _written(tmp_path, (history.night_file([each]) for each in (measure(0), invalid)))

    (found,) = load(tmp_path)

    assert (("PASSED", "INVALID"), (0,)) == (found.outcomes, found.current)


def test_a_file_that_is_no_history_is_refused(tmp_path: Path) -> None:
    _written(tmp_path, [("nights/2026/01/2026-01-01_cpu_0123456789abcdef.jsonl.gz", history.packed(b"{\n"))])

    with pytest.raises(ReportError):
        load(tmp_path)


def test_events_come_back_once_each(tmp_path: Path) -> None:
    day = datetime.date(2026, 1, 2)
    event = Event(day, "remeasured", "softmax/a", "c", "NVIDIA H200", day, "a" * 40, "b" * 40, "SLOWER", 0.03)
    _written(tmp_path, [history.event_file([event]), ("events/2026/other.jsonl", history.encode([event]))])

    assert (event,) == events(tmp_path)


def test_the_record_keeps_to_its_fields() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(
            b'{"night":"2026-01-01","started":"","kernel":"k","outcome":"PASSED","more":1}', type=Measure
        )
