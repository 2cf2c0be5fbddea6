"""The page that stands by itself: complete, inert, small, and readable in a browser on light and dark."""

import html.parser
import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from kernelci import reporters
from kernelci.model import Artifact, Environment, Metric, Report, Row, RungResult, Unit, Verdict
from kernelci.reasons import Outcome
from kernelci.reporters import Context
from kernelci.reporters.html import coded, href

HOSTILE = '<script>alert(1)</script><img src=x onerror="a()">\x1b[31m{{ 7 * 7 }}'
CASE = "65536x2048-bf16"
DIFF = """\
@ from line 1 of base, 1 of head
  S2R R, SR_TID.X                                                  // triton.py:35
- LDG.E.128 R, desc[UR][R.64]                                      // triton.py:41
- EXIT
+ LDG.E R, desc[UR][R.64]                                          // triton.py:41
"""


def _metric(tag: str, value: float, unit: Unit = Unit.COUNT, text: str = "", name: str = "") -> Metric:
    return Metric(tag, value, unit, name or tag, text)


def _rungs(cases: int) -> tuple[RungResult, ...]:
    """Benchmark, dump, profile and roofline as they are left, with so many cases."""
    names = [CASE, *(f"{1024 + number}x2048-bf16" for number in range(1, cases))]
    delta = Metric("delta", 0.034, Unit.FRACTION, "delta", "", 0.031, 0.038)
    timed = [
        Row(
            Outcome.PASSED,
            name,
            metrics=(_metric("flops", 1e11 * (1 + number), Unit.FLOP_PER_SECOND), delta),
            verdict=Verdict.SLOWER if number % 3 == 0 else Verdict.SAME,
        )
        for number, name in enumerate(names)
    ]
    bound = (_metric("attained", 0.54, Unit.FRACTION, "bound by memory; go on"), _metric("intensity", 1.25, Unit.NONE))
    placed = [Row(Outcome.PASSED, name, metrics=bound, notes=("go on: 54 % of a copy's bandwidth",)) for name in names]
    ceilings = (_metric("copy", 4e12), _metric("matmul:bfloat16", 8e14), _metric("sheet_copy", 4.8e12),
                _metric("sheet_matmul:bfloat16", 9.9e14))  # fmt: skip
    looked = Row(
        Outcome.PASSED, CASE, metrics=(_metric("dram_use", 0.5, Unit.FRACTION),), notes=("finding: bank conflicts",)
    )
    dumped = Row(Outcome.PASSED, CASE, "sm_90a", notes=("likely slower: global loads 128 -> 32 bits wide",))
    diff = Artifact(f"dumps/softmax/triton/{CASE}/sm_90a/k.sass.diff", "sass.diff", len(DIFF))
    return (
        RungResult("benchmark", Outcome.PASSED, rows=tuple(timed)),
        RungResult("dump", Outcome.PASSED, rows=(dumped,), artifacts=(diff,)),
        RungResult("profile", Outcome.PASSED, rows=(looked,)),
        RungResult("roofline", Outcome.PASSED, rows=tuple(placed), metrics=ceilings),
    )


def _report(reports: ModuleType, cases: int = 4) -> Report:
    kernel = reports.kernel("softmax/triton", *reports.green("softmax/triton").rungs[:-1], *_rungs(cases))
    found: Report = reports.report((kernel, *reports.one_wrong().kernels[1:]))
    return found


def _lay(folder: Path, text: str = DIFF) -> Path:
    path = folder / f"dumps/softmax/triton/{CASE}/sm_90a/k.sass.diff"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return folder


def _page(report: Report, files: Path | None = None) -> str:
    return str(reporters.get("html").render(report, Context(files=files)))


class Tags(html.parser.HTMLParser):
    """What a page consists of: tags with their attributes, and whether they close as they open."""

    VOID = ("meta", "link", "img", "br")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, Any]]] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize(
    "name", ["all_green", "one_wrong", "compile_error", "all_skipped", "broken", "against_base", "first_times"]
)
def test_every_report_makes_a_whole_page(name: str, reports: ModuleType) -> None:
    found = Tags(_page(reports.ALL[name]()))
    assert [] == found.open
    assert not [tag for tag, _ in found.found if tag in ("script", "link", "img", "iframe", "object")]


def test_all_sections(reports: ModuleType, tmp_path: Path) -> None:
    page = _page(_report(reports), _lay(tmp_path))
    titles = [re.sub("<[^>]*>", "", title) for title in re.findall("<h2>(.*?)</h2>", page)]
    expected = [
        "Ladder",
        "Times against base: 2 SLOWER, 2 SAME",
        "Roofline",
        "Profile",
        "Machine code against base",
        "Numbers",
    ]
    assert expected == [title for title in titles if title in expected]
    assert "global loads 128 -&gt; 32 bits wide" in page
    assert page.count("<circle") >= 4 + 2


def test_a_difference_stands_side_by_side(reports: ModuleType, tmp_path: Path) -> None:
    page = _page(_report(reports), _lay(tmp_path))
    assert '<td class="gone">LDG.E.128 R, desc[UR][R.64] // triton.py:41</td><td class="came">LDG.E R, desc' in page
    assert '<td class="gone">EXIT</td><td></td>' in page


def test_text_of_others_is_inert(reports: ModuleType, tmp_path: Path) -> None:
    report = msgspec.structs.replace(
        _report(reports), notes=(HOSTILE,), environment=Environment(HOSTILE, HOSTILE, gpu=HOSTILE)
    )
    page = _page(report, _lay(tmp_path, f"- {HOSTILE}\n+ {HOSTILE}\n"))
    found = Tags(page)
    assert not [tag for tag, _ in found.found if tag in ("script", "img")]
    assert "\x1b" not in page
    assert "{{ 7 * 7 }}" in page


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../x", "javascript:alert(1)", "a/../../b", "//host/x", "https://x.example"]
)
def test_links_lead_nowhere_else(path: str) -> None:
    assert "<a" not in href(path)


def test_links_lead_to_files() -> None:
    assert '<a href="roofline/a&#34;b.svg">roofline/a&#34;b.svg</a>' == href('roofline/a"b.svg')


@pytest.mark.parametrize("path", ["../k.sass.diff", "/etc/hostname"])
def test_files_outside_of_the_report_are_not_read(reports: ModuleType, tmp_path: Path, path: str) -> None:
    (tmp_path / "k.sass.diff").write_text(DIFF)
    kernel = reports.kernel(
        "softmax/triton", RungResult("dump", Outcome.PASSED, artifacts=(Artifact(path, "sass.diff", 9),))
    )
    (tmp_path / "report").mkdir()
    assert "triton.py:41" not in _page(reports.report((kernel,)), tmp_path / "report")


def test_two_hundred_rows_are_small(reports: ModuleType, tmp_path: Path) -> None:
    assert len(_page(_report(reports, 200), _lay(tmp_path, DIFF * 500)).encode()) < 3_000_000


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
def test_a_browser_shows_it_without_complaint(reports: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(_page(_report(reports, 200), _lay(tmp_path)), encoding="utf-8")
    options = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--enable-logging=stderr",
    )
    done = subprocess.run(
        [str(BROWSER), *options, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120
    )
    assert "<h2>Roofline</h2>" in done.stdout
    assert "CONSOLE" not in done.stderr


def test_what_stands_in_backticks_is_code_and_nothing_else_markup() -> None:
    assert "a &lt;b&gt; <code>run &amp; go</code> `" == str(coded("a <b> `run & go` `"))
