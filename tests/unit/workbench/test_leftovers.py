"""What torch.compile leaves: which files are code, and which only say what was the fastest."""

import io
import tarfile

from hypothesis import given
from hypothesis import strategies as st

from kernelci.workbench.leftovers import choices, code, without_choices

FILES = {
    "./inductor/ab/cab.py": b"code",
    "./inductor/ab/cab.best_config": b"{}",
    "./inductor/fxgraph/fa/fab/abc": b"graph",
    "./inductor/aotautograd/aab/abc": b"graph",
    "./inductor/locks/cab.lock": b"",
    "./triton/XYZ/kernel.cubin": b"machine code",
    "./triton/XYZ/kernel.json": b"{}",
    "./triton/ABC/launcher.so": b"machine code",
}
CODE = {name for name in FILES if not name.endswith((".best_config", ".lock", ".json"))}


def _archive(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def test_code() -> None:
    assert CODE == code(_archive(FILES))


def test_choices() -> None:
    assert {"./inductor/ab/cab.best_config"} == choices(_archive(FILES))


def test_an_empty_archive_has_neither() -> None:
    assert (set(), set()) == (code(b""), choices(b""))


def test_all_but_the_choices() -> None:
    with tarfile.open(fileobj=io.BytesIO(without_choices(_archive(FILES)))) as left:
        found = {one.name: file.read() for one in left if (file := left.extractfile(one)) is not None}
    assert {name: text for name, text in FILES.items() if not name.endswith(".best_config")} == found


def test_without_choices_it_is_the_same() -> None:
    archive = _archive({"./inductor/ab/cab.py": b"code"})
    assert archive is without_choices(archive)


def test_choices_that_were_there_before_stay() -> None:
    archive = _archive({**FILES, "./inductor/new.best_config": b"{}"})
    assert {"./inductor/ab/cab.best_config"} == choices(without_choices(archive, choices(_archive(FILES))))


@given(st.binary(max_size=200), st.integers(0, 300))
def test_a_broken_archive_holds_what_can_be_read(noise: bytes, cut: int) -> None:
    broken = _archive(FILES)[:cut] + noise
    assert (set(), set()) == (code(broken) - CODE, choices(without_choices(broken)))
