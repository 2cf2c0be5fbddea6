"""benchmarks/sections.py: a script's section replaces its own alone."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

MARKED = "<!-- speed -->\n{}\n<!-- end of speed -->\n"


@pytest.fixture(scope="module")
def sections(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("sections")


@pytest.mark.parametrize("after", ["", "\nafter\n", "<!-- other -->\n"])
def test_a_section_is_replaced_in_its_place(sections: ModuleType, after: str) -> None:
    page = f"# Page\n\nbefore\n\n{MARKED.format('old')}{after}"
    assert f"# Page\n\nbefore\n\n{MARKED.format('new')}{after}" == sections.spliced(page, "speed", "\nnew\n\n")


def test_a_first_one_comes_to_the_end(sections: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n", encoding="utf-8")
    sections.write("speed", "new", page)
    sections.write("speed", "newer", page)
    assert f"# Page\n\n{MARKED.format('newer')}" == page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["<!-- speed -->\nold\n", "<!-- end of speed -->\n<!-- speed -->\n", 2 * MARKED])
def test_marks_that_leave_it_open_are_refused(sections: ModuleType, page: str) -> None:
    with pytest.raises(ValueError, match="one <!-- end of speed -->"):
        sections.spliced(page, "speed", "new")
