"""What base and head take of the machine, compared on real cubins from Triton's own ptxas; no GPU needed."""

import importlib.util
import subprocess
from pathlib import Path

import msgspec
import pytest

from kernelci.compiling.builder import Compilation, Compiled, _described
from kernelci.footprint import Footprint, code_hash, compare, figures
from kernelci.workbench import elf
from kernelci.workbench.protocol import BuiltKernel

PTX = """
.version 8.0
.target sm_80
.address_size 64
.const .f32 table[2] = {{{table}, 2.0}};
.visible .entry {symbol}(.param .u64 out)
{{
  .reg .u64 %d<2>; .reg .f32 %f<3>;
  .shared .align 4 .b8 tile[{shared}];
  ld.param.u64 %d1, [out];
  ld.const.f32 %f1, [table];
  {more}
  st.shared.f32 [tile], %f1;
  st.global.f32 [%d1], %f1;
  ret;
}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place for the assembler's files."""
    return tmp_path_factory.mktemp("cubins")


def _build(
    folder: Path, symbol: str = "mine", *, table: str = "1.0", more: str = "", shared: int = 4, file: str = ""
) -> Compiled:
    spec = importlib.util.find_spec("triton")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("needs Triton's ptxas")
    tool = Path(spec.submodule_search_locations[0], "backends", "nvidia", "bin", "ptxas")
    more, source = (f".loc 1 {len(file)} 1\n{more}", f'\n.file 1 "{file}"\n') if file else (more, "")
    (folder / "k.ptx").write_text(PTX.format(symbol=symbol, table=table, more=more, shared=shared) + source)
    subprocess.run([tool, "-arch=sm_80", "-lineinfo", folder / "k.ptx", "-o", folder / "k.cubin"], check=True)
    files = {"cubin": (folder / "k.cubin").read_bytes()}
    return _described(BuiltKernel(symbol, "", files, "case", (32, 1, 1), (8, 1, 1)), sass=False)


def _compare(base: Compiled | None, head: Compiled) -> Footprint:
    builds = (base,) if base is not None else ()
    return compare(Compilation("sm_80", builds, duration_s=1.5), Compilation("sm_80", (head,), duration_s=2.5))


def _launched(build: Compiled, **changes: object) -> Compiled:
    return msgspec.structs.replace(build, kernel=msgspec.structs.replace(build.kernel, **changes))


def test_a_copy_in_another_file_is_identical(folder: Path) -> None:
    one, other = _build(folder, file="k.py"), _build(folder, "theirs", file="another.py")
    lines = [{found.name: found.content for found in elf.sections(each.files["cubin"])} for each in (one, other)]
    assert lines[0][".debug_line"] != lines[1][".debug_line"]
    assert _compare(one, other).identical


def test_a_copy_under_another_name_is_identical(folder: Path) -> None:
    found = _compare(_build(folder), _build(folder, "quite_another_and_longer_name"))
    assert (True, True, (), ("machine code is identical to base's",)) == (
        found.identical,
        found.same_launches,
        found.deltas,
        found.notes(),
    )


def test_one_more_instruction_is_not_identical(folder: Path) -> None:
    found = _compare(_build(folder), _build(folder, more="mul.f32 %f1, %f1, %f1;"))
    assert (False, ()) == (found.identical, found.deltas)
    assert ("machine code differs from base's, resources don't",) == found.notes()


def test_other_constants_are_not_identical(folder: Path) -> None:
    assert not _compare(_build(folder), _build(folder, table="3.0")).identical


def test_another_grid_is_told_apart_from_other_code(folder: Path) -> None:
    build = _build(folder)
    found = _compare(build, _launched(build, grid=(4, 1, 1)))
    assert (True, False) == (found.identical, found.same_launches)
    assert ("machine code is identical to base's; launches differ",) == found.notes()


def test_what_differs_is_told_exactly(folder: Path) -> None:
    found = _compare(_build(folder), _launched(_build(folder, shared=2048), dynamic_shared_bytes=1024))
    text = "case: static shared memory 4 -> 2048 bytes, dynamic shared memory 0 -> 1024 bytes"
    assert (text,) == found.notes()
    assert {"static_shared_base": 4, "static_shared_head": 2048, "dynamic_shared_head": 1024} == {
        metric.tag: metric.value
        for metric in found.metrics()
        if metric.tag in ("static_shared_base", "static_shared_head", "dynamic_shared_head")
    }


def test_compile_times_are_shown_side_by_side(folder: Path) -> None:
    build = _build(folder)
    assert [("compile_time_base", 1.5), ("compile_time_head", 2.5)] == [
        (metric.tag, metric.value) for metric in _compare(build, build).metrics()
    ]


def test_a_build_that_one_side_lacks(folder: Path) -> None:
    build = _build(folder)
    found = _compare(build, _launched(build, case="other", config="BLOCK=64"))
    assert (False, ("case",), ("other (BLOCK=64)",)) == (found.identical, found.only_base, found.only_head)
    assert ("case: only in base", "other (BLOCK=64): only in head") == found.notes()


def test_a_side_that_does_not_compile(folder: Path) -> None:
    found = _compare(None, _build(folder))
    assert (False, False, ("case",)) == (found.identical, found.same_launches, found.only_head)


def test_builds_of_one_name_are_paired_before_others(folder: Path) -> None:
    one, two = _build(folder, "one"), _build(folder, "two", shared=2048)
    found = compare(Compilation("sm_80", (one, two)), Compilation("sm_80", (two, one)))
    assert (True, ()) == (found.identical, found.deltas)


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x7fELF\x02\x01" + b"\xff" * 100])
def test_a_cubin_that_can_not_be_read_is_never_identical(content: bytes) -> None:
    build = Compiled(BuiltKernel("mine", "", {}, "case"), (), {"cubin": content})
    assert ("", False, ()) == (code_hash(build), _compare(build, build).identical, figures(build, "sm_80"))


def test_a_cubin_that_is_cut_off(folder: Path) -> None:
    binary = _build(folder).files["cubin"]
    assert any(section.name == ".text.mine" for section in elf.sections(binary))
    for end in range(0, len(binary) // 2, 97):
        with pytest.raises(elf.BrokenElf):
            elf.sections(binary[:end])
