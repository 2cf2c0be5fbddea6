"""Draws the README's picture: `python docs/images/make.py REPORT_FOLDER` renders a real run's console report as SVG."""

import io
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

from kernelci import results
from kernelci.reporters import Context, console

WIDTH = 110
PICTURE = Path(__file__).with_name("report.svg")


def draw(folder: Path) -> str:
    """The report in `folder` as `kernelci report` shows it on a terminal."""
    shown = console.render(results.read(folder), Context(folder=folder.name, width=WIDTH, color=True))
    recorder = Console(record=True, width=WIDTH, file=io.StringIO(), color_system="standard")
    recorder.print(Text.from_ansi(shown))
    return recorder.export_svg(title="kernelci run", unique_id="kernelci")


if __name__ == "__main__":
    PICTURE.write_text(draw(Path(sys.argv[1])), encoding="utf-8")
