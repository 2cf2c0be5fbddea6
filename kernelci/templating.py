"""What Markdown and HTML templates have in common: how figures are read in them, and what is said of a wrong one."""

from collections.abc import Callable
from typing import Any

import jinja2

from kernelci import digest, second, units
from kernelci.errors import ConfigError
from kernelci.model import Metric, Unit
from kernelci.reasons import REASONS


def _of_metric(text: Callable[[Metric], str]) -> Callable[[Metric | None], str]:
    return lambda found: text(found) if found is not None else ""


FILTERS: dict[str, Callable[..., Any]] = {
    "value": _of_metric(lambda found: units.value(found.value, found.unit)),
    "metric": _of_metric(units.metric),
    "plus_minus": _of_metric(units.plus_minus),
    "change": _of_metric(units.change),
    "chance": _of_metric(units.chance),
    "elapsed": units.elapsed,
    "size": lambda count: units.value(count, Unit.BYTES),
    "place": digest.place,
    "second_reason": second.reason,
    "reproduce": digest.reproduce,
    "reason": REASONS.__getitem__,
}
"""Filters by the names that templates use."""


def wrong(error: jinja2.TemplateError) -> ConfigError:
    """What to raise where a template is wrong."""
    where = f"{error.filename}:{error.lineno}: " if isinstance(error, jinja2.TemplateSyntaxError) else ""
    return ConfigError(f"report template: {where}{error}", hint="compare it with ours in report_templates/")
