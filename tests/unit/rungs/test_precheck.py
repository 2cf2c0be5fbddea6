"""precheck over kernel files that Python can't parse: one message, and a line where there is one."""

from pathlib import Path

import pytest

from kernelci.climbing import climb

CARD = '# /// script\n# [tool.kernelci]\n# reference = "one"\n# backend = "triton"\n# entry = "one"\n# ///\n'


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [("def one(:\n", "invalid syntax (line 7)", 7), ("\0", "source code string cannot contain null bytes", 0)],
)
def test_a_file_that_does_not_parse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str, line: int
) -> None:
    monkeypatch.setenv("KERNELCI_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "kernels" / "one" / "one.py"
    path.parent.mkdir(parents=True)
    path.write_text(CARD + text, encoding="utf-8")

    report, _ = climb(tmp_path, ("precheck",))

    stopped = report.kernels[0].stopped_at
    assert stopped is not None
    assert stopped.finding is not None
    assert ("syntax", message, line) == (stopped.finding.reason, stopped.finding.message, stopped.finding.line)
