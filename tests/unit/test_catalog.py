"""The catalog: what is found, by which name, and what is refused."""

from pathlib import Path

import pytest

from kernelci import catalog
from kernelci.config import Config
from kernelci.errors import ConfigError

CARD = '# /// script\n# [tool.kernelci]\n# reference = "{}"\n# backend = "triton"\n# entry = "f"\n{}# ///\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project of three kernels and two references."""
    for reference in ("softmax", "matmul"):
        _file(tmp_path / "references" / f"{reference}.py", "")
    _file(tmp_path / "references" / "_shared.py", "")
    _file(tmp_path / "kernels" / "softmax" / "triton.py", CARD.format("softmax", ""))
    _file(tmp_path / "kernels" / "softmax" / "cuda.py", CARD.format("softmax", ""))
    _file(tmp_path / "kernels" / "softmax" / "cuda.cu", "__global__")
    _file(tmp_path / "kernels" / "matmul" / "triton.py", CARD.format("matmul", '# name = "fast"\n'))
    return tmp_path


def _file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _names(kernels: tuple[catalog.Kernel, ...]) -> list[str]:
    return [kernel.name for kernel in kernels]


def _selected(root: Path, *patterns: str) -> list[str]:
    return _names(catalog.scan(root, Config()).select(patterns))


def test_all(root: Path) -> None:
    assert ["matmul/fast", "softmax/cuda", "softmax/triton"] == _selected(root)


def test_references(root: Path) -> None:
    assert ["matmul", "softmax"] == list(catalog.scan(root, Config()).references)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("softmax/triton", ["softmax/triton"]),
        ("softmax/*", ["softmax/cuda", "softmax/triton"]),
        ("*", ["matmul/fast", "softmax/cuda", "softmax/triton"]),
        ("matmul", ["matmul/fast"]),
        ("kernels/matmul/triton.py", ["matmul/fast"]),
        ("kernels/softmax/cuda.cu", ["softmax/cuda"]),
    ],
)
def test_select(root: Path, pattern: str, expected: list[str]) -> None:
    assert expected == _selected(root, pattern)


def test_select_keeps_the_order_and_takes_each_once(root: Path) -> None:
    assert ["matmul/fast", "softmax/cuda", "softmax/triton"] == _selected(root, "softmax", "softmax/triton", "matmul")


def test_select_by_path_in_a_project_whose_root_is_a_link(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    link = tmp_path_factory.mktemp("elsewhere") / "link"
    link.symlink_to(root)
    assert ["softmax/cuda"] == _selected(link, "kernels/softmax/cuda.cu")


def test_select_by_path_from_a_relative_root(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    assert ["softmax/cuda"] == _selected(Path(), "kernels/softmax/cuda.py")


def test_select_nothing(root: Path) -> None:
    with pytest.raises(ConfigError, match="no kernel matches 'softmx'") as caught:
        _selected(root, "softmax", "softmx")
    assert ("no-kernels", "known: matmul/fast, softmax/cuda, softmax/triton") == (caught.value.code, caught.value.hint)


def test_two_kernels_of_one_name(root: Path) -> None:
    _file(root / "kernels" / "other" / "fast.py", CARD.format("matmul", ""))
    with pytest.raises(
        ConfigError, match=r"two kernels of the name matmul/fast: kernels/matmul/triton\.py and "
    ) as caught:
        catalog.scan(root, Config())
    assert "duplicate-name" == caught.value.code


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no folder") as caught:
        catalog.scan(tmp_path, Config())
    assert "no-kernels" == caught.value.code


def test_no_reference_folder_is_not_the_catalogs_concern(root: Path) -> None:
    assert {} == catalog.scan(root, Config(references="nowhere")).references


def test_other_folders(root: Path) -> None:
    (root / "kernels").rename(root / "fast")
    assert ["matmul/fast", "softmax/cuda", "softmax/triton"] == _names(
        catalog.scan(root, Config(kernels="fast")).kernels
    )


@pytest.mark.parametrize("place", ["_helper.py", "__pycache__/x.py", ".hidden/x.py", "softmax/_shared.py"])
def test_what_is_no_kernel(root: Path, place: str) -> None:
    _file(root / "kernels" / place, "")
    assert 3 == len(catalog.scan(root, Config()).kernels)


@pytest.mark.parametrize("content", [b"import triton\n", b"\xff\xfe", b"# /// script\n"])
def test_kernel_without_a_card_keeps_its_place(root: Path, content: bytes) -> None:
    path = root / "kernels" / "softmax" / "new.py"
    path.write_bytes(content)
    (kernel,) = catalog.scan(root, Config()).select(["softmax/new"])
    assert (None, True, "softmax") == (kernel.card, bool(kernel.error), kernel.reference)


def test_link_to_nowhere(root: Path) -> None:
    (root / "kernels" / "softmax" / "gone.py").symlink_to("nowhere.py")
    (kernel,) = catalog.scan(root, Config()).select(["softmax/gone"])
    assert "No such file" in kernel.error


def test_sources(root: Path) -> None:
    (kernel,) = catalog.scan(root, Config()).select(["softmax/cuda"])
    assert ["cuda.cu", "cuda.py"] == [path.name for path in kernel.sources()]


def test_hash_covers_what_lies_beside(root: Path) -> None:
    (kernel,) = catalog.scan(root, Config()).select(["softmax/cuda"])
    before = kernel.sha256()
    _file(root / "kernels" / "softmax" / "cuda.cu", "__global__ void f();")
    assert before != kernel.sha256()


def test_hash_does_not_depend_on_the_place(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    (root / "kernels").rename(other / "kernels")
    (kernel,) = catalog.scan(other, Config()).select(["softmax/triton"])
    _file(root / "kernels" / "softmax" / "triton.py", CARD.format("softmax", ""))
    assert kernel.sha256() == catalog.scan(root, Config()).select(["softmax/triton"])[0].sha256()


def test_a_solution_needs_no_card(root: Path) -> None:
    _file(root / "kernels" / "softmax" / "theirs.py", "import triton\nclass ModelNew: ...\n")
    (found,) = catalog.scan(root, Config()).select(["softmax/theirs"])
    assert ("softmax", "triton", "") == (found.reference, found.backend, found.error)


def test_a_card_goes_before_what_a_file_defines(root: Path) -> None:
    _file(root / "kernels" / "softmax" / "theirs.py", CARD.format("matmul", "") + "class ModelNew: ...\n")
    assert "matmul/theirs" in _selected(root)


def test_a_folder_that_is_no_name(root: Path) -> None:
    _file(root / "kernels" / "40 LayerNorm" / "theirs.py", "class ModelNew: ...\n")
    found = [kernel for kernel in catalog.scan(root, Config()).kernels if kernel.error]
    assert ["the folder '40 LayerNorm' can't be a reference's name"] == [one.error.partition(":")[0] for one in found]


def test_a_kernel_that_is_not_utf8_names_the_line(root: Path) -> None:
    path = root / "kernels" / "softmax" / "latin.py"
    path.write_bytes(b"# one\n# gr\xfc\xdfe\n")

    assert "the file is not UTF-8: byte 0xfc in line 2; save it as UTF-8" == catalog.read(path).error
