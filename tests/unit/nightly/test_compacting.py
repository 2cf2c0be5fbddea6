"""Past months are merged, what is too old is dropped, and no night changes by it."""

import datetime
from pathlib import Path

from kernelci import history
from kernelci.nightly.branch import Branch, Edit, Snapshot
from kernelci.nightly.compacting import compaction
from kernelci.nightly.series import load

NAME = "kernelci-history"


def _files(remote: str, into: Path) -> list[str]:
    Branch(remote, NAME).write(into)
    return sorted(str(path.relative_to(into)) for path in into.rglob("*") if path.is_file())


def _filled(remote: str, measure, nights: range) -> None:
    files = dict(history.night_file([measure(night, 1000.0 + night)]) for night in nights)
    Branch(remote, NAME).add(files, "nights")


def test_past_months_are_one_file_and_the_series_stays(remote: str, measure, tmp_path: Path) -> None:
    _filled(remote, measure, range(40))
    _files(remote, tmp_path / "before")

    Branch(remote, NAME).change(compaction(datetime.date(2026, 2, 10)))

    after = _files(remote, tmp_path / "after")
    assert 1 + 9 == len(after)
    assert load(tmp_path / "before") == load(tmp_path / "after")


def test_a_month_that_just_ended_is_left(remote: str, measure, tmp_path: Path) -> None:
    _filled(remote, measure, range(31))

    Branch(remote, NAME).change(compaction(datetime.date(2026, 2, 2)))

    assert 31 == len(_files(remote, tmp_path / "after"))


def test_merging_twice_is_merging_once(remote: str, measure) -> None:
    _filled(remote, measure, range(31))
    first = Branch(remote, NAME).change(compaction(datetime.date(2026, 3, 1)))

    assert first == Branch(remote, NAME).change(compaction(datetime.date(2026, 3, 1)))


def test_a_night_that_arrives_late_is_merged_too(remote: str, measure, tmp_path: Path) -> None:
    _filled(remote, measure, range(30))
    Branch(remote, NAME).change(compaction(datetime.date(2026, 3, 1)))
    _filled(remote, measure, range(30, 31))

    Branch(remote, NAME).change(compaction(datetime.date(2026, 3, 1)))

    assert 2 == len(_files(remote, tmp_path / "after"))
    assert 31 == len(load(tmp_path / "after")[0].nights)


def test_what_is_past_the_retention_goes(remote: str, measure, tmp_path: Path) -> None:
    _filled(remote, measure, range(60))

    Branch(remote, NAME).change(compaction(datetime.date(2026, 4, 11), keep_days=60))

    (series,) = load(_written(remote, tmp_path))
    assert datetime.date(2026, 2, 10) <= series.nights[0]


def _written(remote: str, into: Path) -> Path:
    Branch(remote, NAME).write(into / "after")
    return into / "after"


def test_a_night_that_is_pushed_while_months_are_merged_is_kept(remote: str, measure, tmp_path: Path) -> None:
    _filled(remote, measure, range(31))
    merging = compaction(datetime.date(2026, 3, 1))
    came = iter([range(31, 33)])

    def between(now: Snapshot) -> Edit:
        """The edit is worked out, and then another push comes first."""
        edit = merging(now)
        for nights in came:
            _filled(remote, measure, nights)
        return edit

    Branch(remote, NAME, backoff_s=0.001).change(between)

    assert 1 + 2 == len(_files(remote, tmp_path / "after"))
    assert 33 == len(load(tmp_path / "after")[0].nights)
