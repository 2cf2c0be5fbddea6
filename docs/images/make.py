"""Draws the README's picture: `python docs/images/make.py tests/golden/h200 softmax/` renders the console report of a
real run, of the kernels whose names begin so, as SVG."""

import io
import sys
from pathlib import Path

from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from kernelci import results
from kernelci.reporters import Context, console

WIDTH = 110
PICTURE = Path(__file__).with_name("report.svg")


def draw(folder: Path, prefix: str) -> str:
    """The report in `folder` as `kernelci report` shows it on a terminal, of some of the kernels."""
    report = results.read(folder)
    report = replace(report, kernels=tuple(kernel for kernel in report.kernels if kernel.name.startswith(prefix)))
    shown = console.render(report, Context(folder=folder.name, width=WIDTH, color=True))
    recorder = Console(record=True, width=WIDTH, file=io.StringIO(), color_system="standard")
    recorder.print(Text.from_ansi(shown))
    return recorder.export_svg(title="kernelci run", unique_id="kernelci")


if __name__ == "__main__":
    PICTURE.write_text(draw(Path(sys.argv[1]), "".join(sys.argv[2:3])), encoding="utf-8")
