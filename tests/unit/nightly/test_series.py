"""A history read back."""

import datetime
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from kernelci import history
from kernelci.errors import ReportError
from kernelci.history import Event, Measure
from kernelci.nightly.series import events, load
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
