"""What people read, word for word."""

from collections.abc import Callable
from types import ModuleType

import pytest

from kernelci.reporters import Context, get

NAMES = ("all_green", "one_wrong", "compile_error", "all_skipped", "broken", "against_base", "first_times")
FILES = {"console": "txt", "markdown": "md", "junit": "xml"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", FILES)
def test_reports_read_as_their_golden_files(
    form: str, name: str, reports: ModuleType, golden: Callable[[str, str], None]
) -> None:
    rendered = get(form).render(reports.ALL[name](), Context(folder="kernelci-report"))

    golden(f"{name}.{FILES[form]}", str(rendered))


def test_every_report_has_golden_files(reports: ModuleType) -> None:
    assert tuple(reports.ALL) == NAMES
