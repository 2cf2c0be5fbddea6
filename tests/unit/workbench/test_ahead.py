"""What is compiled beside the earlier rungs: found again, of real processes, and nobody's fault where it fails."""

import io
import tarfile
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelci.errors import RunnerBroken
from kernelci.reference import Reference
from kernelci.workbench import ahead
from kernelci.workbench.ahead import Ahead, compiled, key_of
from kernelci.workbench.arena import Arena
from kernelci.workbench.process import Zygote
from kernelci.workbench.protocol import Source
from kernelci.workbench.session import Limits, Session

TEXT = """
def cases():
    yield bench("a few", rows=3, cols=17, dtype="float32")
    yield bench("more", rows=5, cols=17, dtype="float32")
def inputs(case, draw):
    return {"x": draw.normal(case.rows, case.cols, dtype=case.dtype)}
def outputs(case):
    return {"y": like("x")}
def reference(x):
    return x + 1
"""
# Leaves a file in its cache for each size that it has not found there, as a compiler would.
KEEPING = """
    import os
    from pathlib import Path
    folder = Path(os.environ["KERNELCI_PRIVATE"], "cache", "ours")
    folder.mkdir(parents=True, exist_ok=True)
    def f(x, y):
        known = folder / str(len(x))
        if not known.exists():
            known.write_text(os.urandom(8).hex())
"""
Open = Callable[..., Callable[[Arena], Session]]
CASES = ["3x17-fp32"]


@pytest.fixture
def opened(zygote: Zygote) -> Open:
    """Make what starts a process of a kernel with this text, loaded with a cache."""

    def make(text: str, *caches: bytes) -> Callable[[Arena], Session]:
        source = Source("ours", "kernel.py", {"kernel.py": textwrap.dedent(text).encode()})
        return lambda arena: Session(
            zygote, source, "f", "triton", "cpu", Limits(30.0, 30.0, 2**31), caches, arena=arena
        )

    return make


def test_what_was_compiled_is_found_by_the_next_process(written: Callable[[str], Reference], opened: Open) -> None:
    reference = written(TEXT)
    first = compiled("cpu", reference, reference.cases(), opened(KEEPING))
    again = compiled("cpu", reference, reference.cases(), opened(KEEPING, first))
    other = compiled("cpu", reference, reference.cases(), opened(KEEPING))
    assert (True, _files(first), False) == (bool(first), _files(again), _files(first) == _files(other))


def _files(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as found:
        inside = ((one.name, found.extractfile(one)) for one in found.getmembers() if "ours" in one.name)
        return {name: file.read() for name, file in inside if file is not None}


def test_a_case_that_fails_leaves_what_the_others_need(written: Callable[[str], Reference], opened: Open) -> None:
    reference = written(TEXT)
    found = compiled("cpu", reference, reference.cases(), opened(f"{KEEPING}\n        assert len(x) == 5\n"))
    assert ["3", "5"] == sorted(name.rpartition("/")[2] for name in _files(found))


@pytest.mark.parametrize("text", ["raise ValueError('no')", "def f(x, y): pass\nimport os; os._exit(3)"])
def test_an_expression_that_can_not_be_loaded_leaves_nothing(
    written: Callable[[str], Reference], opened: Open, text: str
) -> None:
    reference = written(TEXT)
    assert b"" == compiled("cpu", reference, reference.cases(), opened(text))


def test_nothing_is_compiled_where_memory_is_short(
    written: Callable[[str], Reference], opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "_has_room", lambda device, size: False)
    reference = written(TEXT)
    assert b"" == compiled("cpu", reference, reference.cases(), opened(KEEPING))


def test_no_case_needs_nothing(written: Callable[[str], Reference], opened: Open) -> None:
    assert b"" == compiled("cpu", written(TEXT), (), opened(KEEPING))


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[[], Ahead]]:
    """Begin anew with what is kept in a folder."""
    made: list[Ahead] = []

    def start() -> Ahead:
        made.append(Ahead(tmp_path / "kept"))
        return made[-1]

    yield start
    for one in made:
        one.close()


def test_what_is_kept_is_not_made_again(started: Callable[[], Ahead]) -> None:
    made: list[str] = []
    for number in range(3):
        one = started()
        one.compile("a", "key", CASES, lambda missing, loaded: made.append("a") or b"kept")  # type: ignore[func-returns-value]
        one.compile("a", "key", CASES, lambda missing, loaded: b"never asked")
        assert (b"kept",) == one.cache("a"), number
    assert ["a"] == made


def test_only_cases_that_are_not_kept_are_made(started: Callable[[], Ahead]) -> None:
    asked: list[tuple[tuple[str, ...], bytes]] = []

    def make(missing: tuple[str, ...], loaded: bytes) -> bytes:
        asked.append((missing, loaded))
        return loaded + b"".join(each.encode() for each in missing)

    found = []
    for cases in (["a"], ["a", "b"], ["b"], ["c", "a"]):
        one = started()
        one.compile("name", "key", cases, make)
        found.append(one.cache("name"))
    assert [(("a",), b""), (("b",), b"a"), (("c",), b"ab")] == asked
    assert [(b"a",), (b"ab",), (b"ab",), (b"abc",)] == found


def test_what_can_not_be_read_is_made_anew(started: Callable[[], Ahead], tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "key").write_bytes(b"cut o")
    one = started()
    one.compile("a", "key", CASES, lambda missing, loaded: b"new")
    assert (b"new",) == one.cache("a")


def test_another_key_is_made_anew(started: Callable[[], Ahead]) -> None:
    first, second = started(), started()
    first.compile("a", "one", CASES, lambda missing, loaded: b"1")
    second.compile("a", "two", CASES, lambda missing, loaded: b"2")
    assert ((b"1",), (b"2",)) == (first.cache("a"), second.cache("a"))


def test_what_could_not_be_made_is_no_cache_and_tried_again(started: Callable[[], Ahead]) -> None:
    first, second = started(), started()
    first.compile("a", "key", CASES, lambda missing, loaded: b"")
    first.compile("b", "other", CASES, lambda missing, loaded: _broken())
    first.settle()
    second.compile("a", "key", CASES, lambda missing, loaded: b"now")
    assert ((), (), (), (b"now",)) == (first.cache("a"), first.cache("b"), first.cache("unknown"), second.cache("a"))


def _broken() -> bytes:
    raise RunnerBroken("the zygote is gone")


def _archive(*names: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(name))
    return buffer.getvalue()


def test_choices_of_who_was_timed_are_kept(started: Callable[[], Ahead]) -> None:
    code, chosen = _archive("a.py"), _archive("a.py", "a.best_config")
    first, second = started(), started()
    first.compile("a", "key", CASES, lambda missing, loaded: code)
    assert "" == first.keep("a", chosen)
    second.compile("a", "key", CASES, lambda missing, loaded: b"never asked")
    assert ((chosen,), (chosen,)) == (first.cache("a"), second.cache("a"))


def test_what_was_compiled_only_when_it_was_timed_is_said_and_kept(started: Callable[[], Ahead]) -> None:
    more = _archive("a.py", "b.cubin", "b.lock")
    first, second = started(), started()
    first.compile("a", "key", CASES, lambda missing, loaded: _archive("a.py"))
    assert "files compiled only then: 1; " == first.keep("a", more)
    second.compile("a", "key", CASES, lambda missing, loaded: b"never asked")
    assert (more,) == second.cache("a")


def test_what_was_there_is_not_written_again(started: Callable[[], Ahead]) -> None:
    known = _archive("a.py", "a.best_config")
    one = started()
    one.compile("a", "key", CASES, lambda missing, loaded: known)
    assert ("", (known,)) == (one.keep("a", _archive("a.py", "other.lock")), one.cache("a"))


def test_nothing_is_kept_of_what_nobody_compiles_ahead(started: Callable[[], Ahead], tmp_path: Path) -> None:
    started().keep("a", _archive("a.py"))
    assert not (tmp_path / "kept").exists()


def test_settled_is_when_all_is_done(started: Callable[[], Ahead]) -> None:
    one, done, may_end = started(), threading.Event(), threading.Event()
    one.compile("a", "key", CASES, lambda missing, loaded: b"1" if may_end.wait(30) else b"")
    one.also(done.set)
    one.also(may_end.set)
    one.settle()
    assert (True, (b"1",)) == (done.is_set(), one.cache("a"))


def test_a_folder_that_can_not_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    one = Ahead(tmp_path / "file")
    one.compile("a", "key", CASES, lambda missing, loaded: b"1")
    assert (b"1",) == one.cache("a")
    one.close()


def test_a_key_names_the_reference_the_gpu_and_versions(written: Callable[..., Reference]) -> None:
    reference, other = written(TEXT), written(TEXT + "\n", "other")
    keys = [
        key_of(reference, "H200", {"torch": "2.11"}),
        key_of(other, "H200", {"torch": "2.11"}),
        key_of(reference, "B200", {"torch": "2.11"}),
        key_of(reference, "H200", {"torch": "2.12"}),
    ]
    assert (4, keys[0]) == (len(set(keys)), key_of(reference, "H200", {"torch": "2.11"}))
