"""Shards' reports as one; what does not belong together is refused, and said."""

from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from kernelci import results
from kernelci.errors import ConfigError, RunnerBroken
from kernelci.hub.merge import merge, merged_report, with_second
from kernelci.model import Change, Report, Second


@pytest.fixture
def halves(reports: ModuleType) -> tuple[Report, Report]:
    """A report in two shards."""
    whole = reports.all_green()
    return tuple(msgspec.structs.replace(whole, kernels=part) for part in (whole.kernels[2:], whole.kernels[:2]))  # type: ignore[return-value]


def test_two_shards_are_the_whole(reports: ModuleType, halves: tuple[Report, Report]) -> None:
    found = merged_report(halves, ["a", "b"])
    expected = sorted(kernel.name for kernel in reports.all_green().kernels)
    assert expected == [kernel.name for kernel in found.kernels]
    assert 0 == found.exit_code


@pytest.mark.parametrize(
    ("what", "more"),
    [
        ("seed", {"seed": "00"}),
        ("kernelci", {"kernelci_version": "9"}),
        ("base", {"change": Change("a" * 40, "b" * 40)}),
    ],
)
def test_a_mixture_is_refused(halves: tuple[Report, Report], what: str, more: dict[str, object]) -> None:
    other = msgspec.structs.replace(halves[1], **more)
    with pytest.raises(ConfigError, match=f"the {what} differs|{what} differs"):
        merged_report([halves[0], other], ["a", "b"])


@pytest.mark.parametrize("field", ["gpu", "driver", "target", "isolation", "python", "machine"])
def test_another_environment_is_refused(halves: tuple[Report, Report], field: str) -> None:
    where = msgspec.structs.replace(halves[1].environment, **{field: "another"})
    with pytest.raises(ConfigError, match="another in b"):
        merged_report([halves[0], msgspec.structs.replace(halves[1], environment=where)], ["a", "b"])


def test_a_kernel_twice_is_refused(halves: tuple[Report, Report]) -> None:
    with pytest.raises(ConfigError, match="two shards report on"):
        merged_report([halves[0], halves[0]], ["a", "b"])


def test_a_missing_shard_breaks_the_run(tmp_path: Path, halves: tuple[Report, Report]) -> None:
    results.write(halves[0], tmp_path)
    with pytest.raises(RunnerBroken, match="1 of 2"):
        merge([tmp_path], tmp_path / "out", expected=2)
    assert not (tmp_path / "out").exists()


def test_no_shard_at_all(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no report"):
        merge([], tmp_path / "out")


def test_dumps_come_along_and_links_do_not(tmp_path: Path, halves: tuple[Report, Report]) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder, half in zip(folders, halves, strict=True):
        (folder / "dumps").mkdir(parents=True)
        (folder / "dumps" / f"{folder.name}.ptx").write_text(folder.name)
        (folder / "dumps" / f"{folder.name}.link").symlink_to("/etc/passwd")
        (folder / "profile").mkdir()
        (folder / "profile" / f"{folder.name}.ncu-rep").write_text(folder.name)
        results.write(half, folder)
    merge(folders, tmp_path / "out")
    assert ["a.ptx", "b.ptx"] == sorted(path.name for path in (tmp_path / "out" / "dumps").iterdir())
    assert ["a.ncu-rep", "b.ncu-rep"] == sorted(path.name for path in (tmp_path / "out" / "profile").iterdir())


def test_what_is_left_undone_stands_in_the_report(tmp_path: Path, halves: tuple[Report, Report]) -> None:
    results.write(msgspec.structs.replace(halves[0], change=Change("a" * 40, "b" * 40)), tmp_path)
    found = merge([tmp_path], tmp_path / "out", 1, "no GPU run yet")
    assert found.change is not None
    assert "no GPU run yet" == found.change.incomplete


def _heard(report: Report, head: str = "a" * 40) -> Report:
    """What a job leaves that only heard the second referee: another machine, another seed, no kernels."""
    where = msgspec.structs.replace(report.environment, machine="another")
    second = Second((msgspec.structs.replace(report.kernels[0], rungs=()),), "ada", "bubblewrap")
    changes = {"kernels": (), "seed": "00", "environment": where, "change": Change("b" * 40, head), "second": second}
    return msgspec.structs.replace(report, **changes)


def _judged(report: Report) -> Report:
    return msgspec.structs.replace(report, change=Change("b" * 40, "a" * 40))


def test_a_second_referee_is_no_shard_and_is_kept_apart(tmp_path: Path, halves: tuple[Report, Report]) -> None:
    first, heard = _judged(halves[0]), _heard(halves[0])
    for name, report in (("first", first), ("heard", heard)):
        (tmp_path / name).mkdir()
        results.write(report, tmp_path / name)
    found = merge([tmp_path / "first", tmp_path / "heard"], tmp_path / "out", expected=1)
    assert msgspec.structs.replace(first, second=heard.second, budget=found.budget) == found
    with pytest.raises(RunnerBroken, match="1 of 2"):
        merge([tmp_path / "first", tmp_path / "heard"], tmp_path / "out", expected=2)


def test_a_second_referee_of_another_commit_is_refused(halves: tuple[Report, Report]) -> None:
    with pytest.raises(ConfigError, match="the head differs"):
        with_second(_judged(halves[0]), [_heard(halves[0], "c" * 40)])


def test_a_second_referee_alone_is_a_report(tmp_path: Path, halves: tuple[Report, Report]) -> None:
    results.write(_heard(halves[0]), tmp_path)
    found = merge([tmp_path], tmp_path / "out")
    assert ((), True, 3) == (found.kernels, found.second is not None, found.exit_code)
