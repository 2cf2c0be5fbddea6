"""Two versions of one kernel, compiled and compared without a GPU."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from kernelci import climbing
from kernelci.model import RungResult

ROOT = Path(__file__).parents[3]
ONE_DTYPE = """

_all = cases


def cases():
    \"\"\"Those of bfloat16 alone: a build a side.\"\"\"
    yield from (case for case in _all() if str(case.dtype).endswith("bfloat16"))
"""
Edits = Sequence[tuple[str, str]]
Compare = Callable[[str, str, Edits], RungResult]


def _lay(root: Path, kernel: str, edits: Edits) -> None:
    """A project with one of this repository's kernels, changed."""
    reference, _, name = kernel.partition("/")
    for folder in ("references", f"kernels/{reference}"):
        (root / folder).mkdir(parents=True)
    text = (ROOT / "references" / f"{reference}.py").read_text()
    (root / "references" / f"{reference}.py").write_text(text + ONE_DTYPE)
    for path in (ROOT / "kernels" / reference).glob(f"{name}.*"):
        (root / "kernels" / reference / path.name).write_text(_changed(path.read_text(), edits))


def _changed(text: str, edits: Edits) -> str:
    for old, new in edits:
        text = text.replace(old, new)
    return text


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What was compiled before, so that a base is compiled once."""
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture
def compare(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Compare:
    """A function (kernel, target, edits) -> the dump rung of the edited kernel beside its original."""
    monkeypatch.setenv("KERNELCI_CACHE", str(cache))

    def run(kernel: str, target: str, edits: Edits) -> RungResult:
        _lay(tmp_path / "base", kernel, ())
        _lay(tmp_path / "head", kernel, edits)
        report, _ = climbing.climb(
            tmp_path / "head", ("dump",), targets=(target,), out=tmp_path / "out", base_folder=tmp_path / "base"
        )
        found = report.kernels[0].rung("dump")
        assert found is not None, report.kernels[0].stopped_at
        return found

    return run
