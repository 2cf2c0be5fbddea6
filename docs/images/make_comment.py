"""Draws the comment of README: `python docs/images/make_comment.py` (needs chromium and a font with emoji).

The report was recorded on an H200 and lies in tests/golden/h200; the pull request around it is made up. The page is
what `publish` would post, and a test holds it against its golden file.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

from markdown_it import MarkdownIt

from kernelci import results
from kernelci.config import Config
from kernelci.hub.conclude import conclude, meaning, touched
from kernelci.hub.pull import File, Files
from kernelci.publication import Publication
from kernelci.reporters import Context, markdown

HERE = Path(__file__).parent
RECORDED = HERE.parents[1] / "tests" / "golden" / "h200"
SIZE = (1280, 1480)


def page() -> str:
    """The comment, as `publish` would post it for a change of all the kernels that the report is about."""
    report = results.read(RECORDED)
    change = touched(Files(tuple(File(kernel.path, "modified") for kernel in report.kernels), True), Config())
    found = conclude(report, change)
    where = Publication(
        pull=7,
        head_sha="a" * 40,
        base_sha="b" * 40,
        head="octo-org/kernels:topic",
        is_fork=False,
        run=4711,
        attempt=1,
        run_url="https://github.com/octo-org/kernels/actions/runs/4711",
        **meaning(found, change),
    )
    return markdown.render(report, Context(publication=where))


def main() -> None:
    """Render, look, write beside this file."""
    browser = shutil.which("chromium")
    if browser is None:
        raise SystemExit("chromium is missing")
    body = MarkdownIt("commonmark", {"html": True}).enable("table").render(page())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "comment.html")
        frame = (HERE / "comment_frame.html").read_text(encoding="utf-8")
        path.write_text(frame.replace("BODY", body), encoding="utf-8")
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += [f"--window-size={SIZE[0]},{SIZE[1]}", f"--screenshot={HERE / 'comment.png'}", path.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)


if __name__ == "__main__":
    main()
