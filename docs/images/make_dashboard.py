"""Takes the dashboard's pictures from a made-up year: `python docs/images/make_dashboard.py` (needs chromium)."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import nightly_year  # noqa: E402

from kernelci.nightly import dashboard  # noqa: E402


def main() -> None:
    """Build, look, write beside this file."""
    browser = shutil.which("chromium")
    if browser is None:
        raise SystemExit("chromium is missing")
    with tempfile.TemporaryDirectory() as name:
        history, site = Path(name, "history"), Path(name, "site")
        nightly_year.write(history)
        overview, *others = dashboard.build(history, site, "octo-org/kernels")
        for picture, page, size in (("overview", overview, "1280,760"), ("kernel", others[0], "1280,1700")):
            command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
            command += [f"--window-size={size}", "--virtual-time-budget=4000"]
            command += [f"--screenshot={Path(__file__).with_name(f'nightly_{picture}.png')}", page.as_uri()]
            subprocess.run(command, check=True, capture_output=True, timeout=120)


if __name__ == "__main__":
    main()
