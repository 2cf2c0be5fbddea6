"""The dashboard: a folder of static pages that any web server shows; nothing is fetched from anywhere else."""

import datetime
import shutil
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import jinja2
import msgspec
from markupsafe import Markup

from kernelci import inert, resources
from kernelci.errors import ConfigError, unwritten
from kernelci.nightly import pages
from kernelci.nightly.changes import Change, changes
from kernelci.nightly.series import Series, events, load

SITE = Path(__file__).parent / "site"


def build(history: Path, out: Path, repository: str = "", root: Path | None = None) -> tuple[Path, ...]:
    """Write the pages for the history in a folder into `out`; the pages. Raises ConfigError, ReportError.

    `repository`: OWNER/NAME on GitHub, for links to commits. `root`: a project whose templates override ours.
    """
    if not history.is_dir():
        raise ConfigError(f"no folder {history}", hint="`kernelci history fetch` brings the history into one")
    every = sorted(load(history), key=lambda series: (series.kernel, pages.natural(series.case), series.gpu))
    today = max((series.nights[-1] for series in every), default=datetime.date.today())
    found = changes(every, events(history), today)
    templates = _templates(root)
    _assets(out)
    written = [_overview(templates, out, every, found, today)]
    for kernel, group in groupby(every, key=lambda series: series.kernel):
        written.append(_kernel(templates, out, kernel, tuple(group), found, repository))
    return tuple(written)


def _templates(root: Path | None) -> jinja2.Environment:
    folders = [str(folder) for folder in resources.template_folders(root)]
    made = jinja2.Environment(loader=jinja2.FileSystemLoader(folders), autoescape=True, trim_blocks=True)
    made.filters["line"] = lambda text: inert.line(str(text), 200)
    return made


def _assets(out: Path) -> None:
    try:
        (out / "kernel").mkdir(parents=True, exist_ok=True)
        shutil.copytree(SITE, out / "site", dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    except OSError as error:
        raise unwritten(out, error) from error


def _overview(
    templates: jinja2.Environment, out: Path, every: Sequence[Series], found: Sequence[Change], today: datetime.date
) -> Path:
    rows = pages.standings(every, found)
    page = templates.get_template("nightly.html.j2").render(
        rows=rows,
        counts=Counter(row.word for row in rows),
        words=tuple(pages.MARKS),
        marks=pages.MARKS,
        gpus=sorted({row.gpu for row in rows}),
        today=today,
        timed=any(any(series.time_ns) for series in every),
    )
    return _written(out / "index.html", page)


def _kernel(
    templates: jinja2.Environment,
    out: Path,
    kernel: str,
    group: Sequence[Series],
    found: Sequence[Change],
    repository: str,
) -> Path:
    data = [pages.columns(series, found, repository) for series in group]
    page = templates.get_template("nightly_kernel.html.j2").render(
        kernel=kernel, rows=pages.standings(group, found), data=_embedded(data), ids=[each["id"] for each in data]
    )
    return _written(out / pages.page_of(kernel), page)


def _embedded(data: object) -> Markup:
    """JSON that can stand in a script element: nothing in it ends the element or begins another."""
    text = msgspec.json.encode(data).decode()
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _written(path: Path, page: str) -> Path:
    path.write_text(page, encoding="utf-8")
    return path
