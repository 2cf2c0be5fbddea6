"""CSV: one line for each metric of each row, as spreadsheets read it."""

import csv
import io

import msgspec

from kernelci import measures
from kernelci.measures import Measure
from kernelci.model import Report
from kernelci.reporters import Context

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def render(report: Report, context: Context) -> str:
    """A header and the rows. No text begins as a formula does: a spreadsheet would compute it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [field.name for field in msgspec.structs.fields(Measure)]
    writer.writerow(names)
    for measure in measures.of(report):
        writer.writerow([_cell(getattr(measure, name)) for name in names])
    return out.getvalue()


def _cell(value: str | float | None) -> str | float:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    return "" if value is None else value
