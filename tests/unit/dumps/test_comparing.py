"""Builds of two folders: paired, compared, told; and what can't be read is said."""

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from kernelci.cli import cli
from kernelci.dumps import comparing, specimen, telling
from kernelci.dumps.specimen import RECORD, Record, Specimen
from kernelci.errors import ConfigError

LOAD = "        /*0010*/                   LDG.E{width} R4, desc[UR4][R2.64] ;\n"
WIDE, NARROW = LOAD.format(width=".128"), LOAD.format(width="")


def _lay(folder: Path, place: str, sass: str, record: Record | None = None, ptx: str = "") -> Path:
    path = folder / f"{place}.sass"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(sass)
    path.with_suffix(".ptx").write_text(ptx)
    if record is not None:
        Path(f"{path.with_suffix('')}{RECORD}").write_bytes(specimen.written(record))
    return folder


def test_a_report_and_its_dumps_are_the_same(tmp_path: Path) -> None:
    _lay(tmp_path / "dumps", "softmax/x/case/sm_90a/k", WIDE, Record("k", "A=1", registers=40), "ret;")
    found = specimen.read(tmp_path)
    assert found == specimen.read(tmp_path / "dumps")
    assert [("softmax/x/case/sm_90a/k", 40, WIDE, "ret;")] == [
        (each.place, each.record.registers, each.sass, each.ptx) for each in found
    ]


@pytest.mark.parametrize("content", [b"", b"{", b'{"registers": -1}', b'{"more": 1}', b"x" * 2**17])
def test_a_record_of_another_form_is_none(tmp_path: Path, content: bytes) -> None:
    _lay(tmp_path, "k", WIDE)
    (tmp_path / f"k{RECORD}").write_bytes(content)
    assert [Record()] == [each.record for each in specimen.read(tmp_path)]


def test_a_folder_without_machine_code(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no \.sass file"):
        specimen.read(tmp_path)


def test_builds_are_paired_by_symbol_then_by_order() -> None:
    base = [Specimen("k/c/sm_80/one", Record("one"), WIDE), Specimen("k/c/sm_80/two", Record("two"), WIDE)]
    head = [Specimen("k/c/sm_80/three", Record("three"), WIDE), Specimen("k/c/sm_80/two", Record("two"), WIDE)]
    found = comparing.paired(base, [*head, Specimen("k/d/sm_80/two", Record("two"), WIDE)])
    assert {("one", "three"), ("two", "two")} == {(old.record.symbol, new.record.symbol) for old, new in found.pairs}
    assert ((), ("k/d/sm_80/two",)) == (found.only_base, found.only_head)


def test_a_narrower_load() -> None:
    base, head = Specimen("k", Record(registers=40), WIDE), Specimen("k", Record(registers=44, stack_bytes=8), NARROW)
    found = comparing.compare(base, head)
    assert ("likely slower: global loads 128 -> 32 bits wide",) == found.notes()
    assert ["registers 40 -> 44", "stack 0 -> 8 bytes"] == [figure.text() for figure in found.figures]


def test_other_registers_are_the_same_code() -> None:
    found = comparing.compare(Specimen("k", Record(), WIDE), Specimen("k", Record(), WIDE.replace("R4", "R8")))
    assert (True, ("the same machine code",)) == (found.identical, found.notes())


@pytest.mark.parametrize(
    ("sass", "expected"),
    [
        ("// no disassembly: not a cubin: 0 bytes\n", "head has no machine code to compare: not a cubin: 0 bytes"),
        ("", "head has no machine code to compare: the file holds no SASS"),
        (
            "        /*0010*/                   XYZZY R4 ;\n",
            "head: 100% of its instructions are of opcodes that kernelci does not know",
        ),
    ],
)
def test_what_can_not_be_read_is_said(sass: str, expected: str) -> None:
    found = comparing.compare(Specimen("k", Record(), WIDE), Specimen("k", Record(), sass))
    assert expected == found.notes()[-1]
    assert not found.identical


def test_folders_as_text(tmp_path: Path) -> None:
    base = _lay(_lay(_lay(tmp_path / "a", "k", WIDE), "same", WIDE), "gone", WIDE)
    head = _lay(_lay(_lay(tmp_path / "b", "k", NARROW * 2), "same", WIDE), "fresh", WIDE)
    expected = """\
only in base: gone
only in head: fresh
k
  likely slower: global loads 128 -> 32 bits wide
  instructions 1 -> 2
  class                  base   head
  global memory             1 → 2      (+1)
  opcode                 base   head
  LDG                       1 → 2      (+1)
  SASS, base - and head +:
    @ from line 1 of base, 1 of head
    - LDG.E.128 R, desc[UR][R.64]
    and 2 more lines (--lines)
same: the same machine code"""
    assert expected == "\n".join(line.rstrip() for line in telling.folders(base, head, lines=2).split("\n"))


def test_verb(tmp_path: Path) -> None:
    base, head = _lay(tmp_path / "a", "k", WIDE), _lay(tmp_path / "b", "k", NARROW)
    done = CliRunner().invoke(cli, ["diff", str(base), str(head), "--json"], standalone_mode=False)
    assert ["likely slower: global loads 128 -> 32 bits wide"] == msgspec.json.decode(done.output)["builds"][0][
        "causes"
    ]


def test_verb_of_a_folder_that_is_not_there(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["diff", str(tmp_path), str(tmp_path / "x")], standalone_mode=False)
    assert isinstance(done.exception, ConfigError)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no folder .*nowhere"):
        specimen.read(tmp_path / "nowhere")
