"""The contract of a reporter: a module in this folder with `render(report, context)`; it registers itself by existing.

The format's name is the module's with hyphens, less a trailing underscore (which keeps `json_` apart from the standard
library).
"""

import importlib
import pkgutil
from pathlib import Path
from typing import Literal, Protocol, cast

from msgspec import Struct

from kernelci.errors import ConfigError
from kernelci.model import Report
from kernelci.publication import Publication


class Context(Struct, frozen=True, kw_only=True):
    """What a reporter knows besides the report."""

    folder: str = ""
    """Where the report lies, as its reader would name it."""
    files: Path | None = None
    """HTML only: the folder to read the report's artifacts from."""
    root: Path | None = None
    """The project, whose own report_templates override ours."""
    page: Literal["comment", "summary"] = "comment"
    """Markdown only: the short page for a pull request, or the long one for a job's summary."""
    publication: Publication | None = None
    """Markdown only: the pull request that the page is for."""
    width: int = 100
    """Console only: columns."""
    color: bool = False
    """Console only: whether to emit terminal colours."""


class Reporter(Protocol):
    """One format."""

    def render(self, report: Report, context: Context) -> str | bytes:
        """The whole report in this format."""


def names() -> tuple[str, ...]:
    """The formats there are."""
    return tuple(sorted(_modules()))


def get(name: str) -> Reporter:
    """The reporter of a format. Raises ConfigError for an unknown one."""
    known = _modules()
    if name not in known:
        raise ConfigError(f"no format {name!r}", hint=f"known: {', '.join(sorted(known))}")
    return cast(Reporter, importlib.import_module(f"{__name__}.{known[name]}"))


def render(name: str, report: Report, root: Path | None = None, files: Path | None = None) -> str | bytes:
    """The report in a format, as text where it is text (a reporter that is not says BINARY).

    Raises ConfigError for an unknown format, and for a template that is wrong.
    """
    reporter = get(name)
    made = reporter.render(report, Context(root=root, files=files))
    return made.decode() if isinstance(made, bytes) and not getattr(reporter, "BINARY", False) else made


def _modules() -> dict[str, str]:
    found = (module.name for module in pkgutil.iter_modules(__path__))
    return {name.rstrip("_").replace("_", "-"): name for name in found if not name.startswith("_")}
