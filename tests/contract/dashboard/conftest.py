"""A made-up year, its dashboard on a local server, and a headless Chromium to look at it."""

import datetime
import functools
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kernelci import history
from kernelci.nightly import dashboard
from kernelci.reasons import Outcome


class Site:
    """The pages, where they are served, and how long the processor took to build them."""

    def __init__(self, folder: Path, url: str, seconds: float) -> None:
        self.folder, self.url, self.seconds = folder, url, seconds


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="session")
def site(script: Callable[[str], ModuleType], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A year of 600 rows."""
    history, out = tmp_path_factory.mktemp("history"), tmp_path_factory.mktemp("site")
    script("nightly_year").write(history)
    began = time.process_time()  # the processor's, so that a busy machine fails nothing
    dashboard.build(history, out, "octo-org/kernels")
    took = time.process_time() - began
    with _served(out) as url:
        yield Site(out, url, took)


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def untimed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Three nights of one kernel without a GPU; the last has other machine code."""
    history_, out = tmp_path_factory.mktemp("untimed"), tmp_path_factory.mktemp("site")
    for night, (registers, stack) in enumerate([(48.0, 0.0), (48.0, 0.0), (64.0, 16.0)]):
        day = datetime.date(2026, 1, 1) + datetime.timedelta(days=night)
        record = history.Measure(
            day, f"{day}T02:00:00+00:00", "softmax/a", Outcome.PASSED, "8x8-fp32", "no-gpu", commit=f"{night:040x}",
            target="sm_90a", registers=registers, stack_bytes=stack, code_bytes=4096.0, compile_s=2.5, error_ratio=0.4,
        )  # fmt: skip
        path, data = history.night_file([record])
        (history_ / path).parent.mkdir(parents=True, exist_ok=True)
        (history_ / path).write_bytes(data)
    dashboard.build(history_, out)
    with _served(out) as url:
        yield Site(out, url, 0.0)


@pytest.fixture(scope="session")
def _chromium() -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver")
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        if os.environ.get("CI"):
            pytest.fail("chromium and chromedriver are needed")
        pytest.skip("chromium and chromedriver are needed")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield started
    started.quit()


@pytest.fixture
def browser(_chromium: Any) -> Iterator[Any]:
    """The browser, of a desk's size; nothing may stand in its console when the test is over."""
    _chromium.set_window_size(1280, 900)
    _chromium.get_log("browser")
    yield _chromium
    errors = [line for line in _chromium.get_log("browser") if line["level"] in ("SEVERE", "WARNING")]
    assert [] == errors
