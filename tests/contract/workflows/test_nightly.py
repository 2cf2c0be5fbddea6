"""W3, played by act: a night of this machine goes from the ladder to the history, the issues and the dashboard.

The machine has no GPU, so the night has no times. The history that it is added to begins with recorded nights of a GPU
whose last ones are slower, which paired blocks confirmed: the issue that the night keeps in step is about those.
"""

import datetime
import json
import re
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import acting  # beside this file; conftest.py makes it importable
import pytest

from kernelci import history
from kernelci.history import Event, Measure
from kernelci.nightly import BRANCH
from kernelci.nightly.branch import Branch
from kernelci.nightly.series import load
from kernelci.reasons import Outcome

pytestmark = [pytest.mark.slow, acting.needs_act]
KERNEL = acting.REPOSITORY / "kernelci" / "data" / "init" / "kernel.py.j2"
REFERENCE = '''"""A line through each element: y = a * x + b."""

from kernelci.reference import bench, check, like, sizes

domain = {"size": sizes(1, 300)}


def cases():
    for size in (0, 1, 2, 127, 128, 129, 200, 255):
        yield check(f"{size} elements", size=size, dtype="float32")
    yield bench("a line", size=256, dtype="float32")


def inputs(case, draw):
    return {name: draw.normal(case.size, dtype=case.dtype) for name in ("x", "a", "b")}


def outputs(case):
    return {"y": like("x")}


def reference(x, a, b):
    return a * x + b


def cost(case):
    return 2 * case.size
'''
RECORDED = acting.REPOSITORY / "benchmarks" / "recorded" / "h200_blocks.json"


@pytest.fixture(scope="module")
def hub(standin: ModuleType) -> Iterator[Any]:
    made = standin.GitHub()
    server = standin.serve(made)
    yield made
    server.shutdown()
    server.server_close()


def _event() -> dict[str, Any]:
    return {"schedule": "17 1 * * *", "repository": {"full_name": acting.NAME, "default_branch": "main"}}


def _project(folder: Path) -> Path:
    """kernelci with a small kernel that passes, and one that precheck stops: the climb is red, and remembered."""
    repository = acting.repository(folder)
    (repository / "references" / "line.py").write_text(REFERENCE)
    (repository / "kernels" / "line").mkdir()
    shutil.copy(KERNEL, repository / "kernels" / "line" / "triton.py")
    broken = repository / "kernels" / "softmax" / "triton.py"
    broken.write_text(broken.read_text().replace("def softmax(", "def softmax_("))
    acting.commit(repository, "a night")
    return repository


def _recorded(remote: str, last: datetime.date) -> None:
    """An H200's nights up to `last`: a row whose recorded times, one a night, take 2 % longer from the 20th on."""
    row = json.loads(RECORDED.read_text())["rows"][-1]
    times = [ns for pair in row["aa"][:10] for ns in pair] + [head for _, head in row["slower"]["0.02"][:10]]
    days = [last - datetime.timedelta(days=len(times) - 1 - at) for at in range(len(times))]
    files = dict(
        history.night_file(
            [
                Measure(
                    day, f"{day}T02:00:00+00:00", row["row"].split()[0], Outcome.PASSED, row["row"].split()[1],
                    commit=f"{at:040x}", gpu="NVIDIA H200", target="sm_90a", driver="580.159.04", time_ns=time,
                )
            ]
        )
        for at, (day, time) in enumerate(zip(days, times, strict=True))
    )  # fmt: skip
    event = Event(
        days[21], "remeasured", *row["row"].split(), "NVIDIA H200", days[20], f"{12:040x}", f"{21:040x}", "SLOWER",
        0.02, 0.018, 0.022, 0.02,
    )  # fmt: skip
    Branch(remote, BRANCH).add(files | dict([history.event_file([event])]), "recorded nights")


class Night(NamedTuple):
    """What a night left."""

    played: acting.Played
    history: Path
    site: Path
    hub: Any


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory, hub: Any) -> Night:
    folder = tmp_path_factory.mktemp("night")
    repository = _project(folder / "repository")
    remote = folder / "history.git"
    acting.git(folder, "init", "--quiet", "--bare", str(remote))
    _recorded(str(remote), datetime.datetime.now(datetime.UTC).date() - datetime.timedelta(days=1))
    environment = {"STANDIN_API": hub.url, "KERNELCI_HISTORY": str(remote)}
    environment |= {"KERNELCI_SEEDS": "1", "KERNELCI_TARGETS": "sm_90a"}
    played = acting.play(repository, _event(), folder / "play", "nightly.yml", **environment)
    Branch(str(remote), BRANCH).write(folder / "out")
    with zipfile.ZipFile(played.archive("github-pages-1")) as archive:
        archive.extractall(folder / "site")
    return Night(played, folder / "out", folder / "site", hub)


def test_every_job_but_the_publishing_one_runs_and_a_failed_kernel_makes_the_climb_red(night: Night) -> None:
    ran = set(re.findall(r"^\[nightly/(\w+) *\].*Set up job", night.played.log, re.MULTILINE))
    assert {"climb", "record", "alert", "site"} == ran, night.played.log[-6000:]
    red = set(re.findall(r"^\[nightly/(\w+) *\].*Job failed", night.played.log, re.MULTILINE))
    assert ({"climb"}, True) == (red, night.played.code != 0)


def test_the_history_has_what_was_measured_and_no_time(night: Night) -> None:
    found = {each.kernel: each for each in load(night.history) if each.gpu != "NVIDIA H200"}
    assert {"line/triton", "softmax/triton"} == set(found), night.played.log[-6000:]
    line = found["line/triton"]
    assert ("no GPU: sm_90a", ("PASSED",), (None,), "no-gpu") == (
        line.gpu,
        line.outcomes,
        line.time_ns,
        line.reasons[0],
    )
    known = (line.registers, line.stack_bytes, line.code_bytes, line.compile_s, line.error_ratio)
    assert [] == [column for column in known if column[0] is None]
    assert 0 < (line.registers[0] or 0) < 256
    assert 0 <= (line.error_ratio[0] or 0) <= 1
    assert "no GPU" == found["softmax/triton"].gpu
    assert ("FAILED", "entry-missing") == (found["softmax/triton"].outcomes[0], found["softmax/triton"].reasons[0])


def test_the_recorded_nights_are_all_still_there(night: Night) -> None:
    (series,) = (each for each in load(night.history) if each.gpu == "NVIDIA H200")
    assert (30, 30) == (len(series.nights), len(series.current))


def test_the_dashboard_says_that_there_are_no_times(night: Night) -> None:
    overview = (night.site / "index.html").read_text()
    assert re.search(r"line/triton.*no GPU: sm_90a.*◇ no times <small>\d+ registers, 0 B stack", overview)
    assert re.search(r"softmax/triton.*✕ failed", overview)
    (page,) = (night.site / "kernel").glob("line-triton-*.html")
    assert "No night of this row has a time" in page.read_text()


def test_the_recorded_change_is_one_issue(night: Night) -> None:
    (issue,) = night.hub.issues
    assert re.match(r"softmax/triton is 2\.0 % slower since \d{4}-\d\d-\d\d$", issue["title"])
    assert "**confirmed**" in issue["body"]
    assert "65536x2048-bf16" in issue["body"]
