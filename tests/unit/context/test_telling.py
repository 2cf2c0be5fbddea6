"""Reports and dumps told to a model: what matters first, in pages of bounded size."""

from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci.context import dumps, telling
from kernelci.errors import ConfigError

SASS = """
        /*0000*/                   LDC R1, c[0x0][0x28] ;   /* 0x0 */
        /*0010*/              @!P0 LDG.E.128 R4, desc[UR4][R2.64] ;
        /*0020*/             @UP1 FFMA R0, R1, R2, R3 ;
        /*0030*/                   FFMA.FTZ R0, R1, R2, R3 ;
.L_x_0:
"""


def test_every_report_has_its_words(reports: ModuleType) -> None:
    for make in reports.ALL.values():
        found = make()
        text = telling.report(found)
        assert all(kernel.name in text for kernel in found.kernels)


def test_a_stop_says_where_why_and_what_next(reports: ModuleType) -> None:
    text = telling.report(reports.ALL["compile_error"]())
    assert ("(compile-error)" in text, "next: " in text) == (True, True)


@given(st.text(alphabet="ab\n", max_size=30_000))
def test_pages_hold_every_line_once(text: str) -> None:
    lines: list[str] = []
    while True:
        page = telling.paged(text, len(lines)).split("\n")
        more = page[-1].startswith("[") and page.pop()
        lines += page
        assert sum(map(len, page)) <= telling.PAGE + max(map(len, page))
        if not more:
            break
    assert [line if len(line) <= telling.PAGE else f"{line[: telling.PAGE]} …" for line in text.split("\n")] == lines


def test_page_past_the_end() -> None:
    assert "[nothing from line 9 on: there are 2 lines]" == telling.paged("a\nb", 9)


def _dump(folder: Path, **files: str) -> Path:
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.sass").write_text(text, encoding="utf-8")
    return folder


def test_dumps_compared(tmp_path: Path) -> None:
    base = _dump(tmp_path / "a", k=SASS, same=SASS, gone=SASS)
    head = _dump(tmp_path / "b", k=SASS.replace("FFMA", "HFMA2"), same=SASS, fresh=SASS)
    expected = """\
only in base: gone
only in head: fresh
k
  opcode                 base   head
  FFMA                      2 → 0      (-2)
  HFMA2                     0 → 2      (+2)
same: the same machine code"""
    assert expected == "\n".join(line.rstrip() for line in dumps.compared(base, head).split("\n"))


@pytest.mark.parametrize("name", ["..", "/etc", "nope", "a/../../x"])
def test_dumps_are_within_the_project(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError):
        dumps.inside(tmp_path, name)
