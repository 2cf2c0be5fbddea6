"""W3, played by act: a night of this machine goes from the ladder to the history, the issues and the dashboard."""

import importlib.util
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import acting  # beside this file; conftest.py makes it importable
import pytest

from kernelci.nightly import BRANCH
from kernelci.nightly.branch import Branch

pytestmark = [pytest.mark.slow, acting.needs_act]


def _module(name: str) -> ModuleType:
    path = Path(__file__).parents[1] / "github" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"github_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def hub() -> Iterator[Any]:
    standin = _module("standin")
    _module("standin_issues").add_to(standin)
    made = standin.GitHub()
    server = standin.serve(made)
    yield made
    server.shutdown()
    server.server_close()


def _event() -> dict[str, Any]:
    return {"schedule": "17 1 * * *", "repository": {"full_name": acting.NAME, "default_branch": "main"}}


def test_a_night_from_end_to_end(tmp_path: Path, hub: Any) -> None:
    repository = acting.repository(tmp_path / "repository")
    # A kernel that precheck stops: the climb is red and short, and the night is remembered all the same.
    broken = repository / "kernels" / "softmax" / "triton.py"
    broken.write_text(broken.read_text().replace("def softmax(", "def softmax_("))
    acting.commit(repository, "broken")
    remote = tmp_path / "history.git"
    acting.git(tmp_path, "init", "--quiet", "--bare", str(remote))

    played = acting.play(
        repository, _event(), tmp_path / "play", "nightly.yml", STANDIN_API=hub.url, KERNELCI_HISTORY=str(remote)
    )

    ran = set(re.findall(r"^\[nightly/(\w+) *\].*Set up job", played.log, re.MULTILINE))
    assert {"climb", "record", "alert", "site"} == ran, played.log[-6000:]
    Branch(str(remote), BRANCH).write(tmp_path / "out")
    assert 1 == len(list((tmp_path / "out" / "nights").rglob("*.gz"))), played.log[-6000:]
    assert ("GET", "/repos/octo-org/kernels/issues", None) in hub.requests
    with zipfile.ZipFile(played.archive("github-pages")) as archive:
        assert "index.html" in archive.namelist()
