"""Folders of jobs, their caches, the host's records: made, removed, kept by trust."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci.errors import RunnerBroken
from kernelci.runner import workplace
from kernelci.runner.caches import Caches
from kernelci.runner.records import KEPT_JOBS, Job, Now, Quarantine, Records
from kernelci.runner.users import User
from kernelci.runner.workplace import Workplace

OWN = User(os.getuid(), os.getgid(), "", False)
APART = User(61_999, 61_999, "job", True)
AS_ROOT = os.geteuid() == 0
MINE = APART if AS_ROOT else OWN


@pytest.fixture
def installation(tmp_path: Path) -> Path:
    folder = tmp_path / "installation"
    (folder / "bin").mkdir(parents=True)
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "bin" / "link").symlink_to("../run.sh")
    return folder


def test_a_workplace(installation: Path, tmp_path: Path) -> None:
    place = Workplace(tmp_path / "jobs" / "one", MINE)

    place.make(installation)

    assert "#!/bin/sh\n" == (place.runner / "bin" / "link").read_text()
    assert {MINE.uid} == {
        path.stat().st_uid for path in (place.home, place.temporary, place.runner, place.runner / "bin")
    }
    assert os.getuid() == (place.runner / "run.sh").stat().st_uid  # what lies in it is still the installation's
    assert workplace.remove(place.folder)
    assert (installation / "run.sh").is_file()


def test_no_installation(tmp_path: Path) -> None:
    with pytest.raises(RunnerBroken, match=r"holds no run\.sh"):
        Workplace(tmp_path / "one", OWN).make(tmp_path)


def test_the_last_of_a_log(tmp_path: Path) -> None:
    place = Workplace(tmp_path, OWN)
    assert "" == place.tail()

    place.log.write_bytes(b"x" * 5000 + "\xff the end".encode("latin-1"))
    assert (2000, "\ufffd the end") == (len(place.tail().encode("latin-1", "replace")), place.tail()[-9:])


@pytest.mark.parametrize(
    "mess",
    [
        "mkdir -p a/b; touch a/b/c; chmod 000 a/b a",
        "ln -s /etc link; touch -- -rf $'new\\nline'; mkfifo pipe",
    ],
)
def test_whatever_a_job_left_is_removed(tmp_path: Path, mess: str) -> None:
    (tmp_path / "job").mkdir()
    subprocess.run(["bash", "-c", mess], cwd=tmp_path / "job", check=True)

    assert workplace.remove(tmp_path / "job")
    assert Path("/etc/passwd").exists()


def test_only_what_belongs_to_the_jobs_user_is_astray(tmp_path: Path) -> None:
    (tmp_path / "ours").touch()
    (tmp_path / "theirs").touch()
    if not AS_ROOT:
        assert [] == workplace.strays(OWN, (tmp_path,))
        return
    os.chown(tmp_path / "theirs", APART.uid, APART.gid)

    assert [tmp_path / "theirs"] == workplace.strays(APART, (tmp_path, tmp_path / "none"))


def test_caches(tmp_path: Path) -> None:
    caches = Caches(tmp_path, MINE, pulls=2)

    def job(key: str, leaves: str, kept: bool = True) -> list[str]:
        caches.lay(key)
        found = sorted(path.name for path in caches.active.iterdir())
        (caches.active / leaves).touch()
        caches.keep(key if kept else "")
        return found

    assert [[], ["one"], ["one"], ["a", "one"], ["one"], []] == [
        job("base", "one"), job("pull-7", "a"), job("pull-8", "b"), job("pull-7", "c"), job("base", "two", kept=False),
        job("", "anything"),
    ]  # fmt: skip
    assert ["a", "c", "one"] == sorted(path.name for path in (tmp_path / "kept" / "pull-7").iterdir())
    job("pull-9", "d")
    assert ["base", "pull-7", "pull-9"] == sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert [True, True, True, False] == [caches.drop_one() for _ in range(4)]


@pytest.mark.skipif(not AS_ROOT, reason="without a user of its own the files are copies")
def test_what_is_kept_is_roots_and_keeps_no_special_bits(tmp_path: Path) -> None:
    caches = Caches(tmp_path, APART, pulls=2)
    caches.lay("base")
    tool = caches.active / "tool"
    tool.touch()
    os.chown(tool, APART.uid, APART.gid)
    tool.chmod(0o6755)
    (caches.active / "private").touch(0o600)
    caches.keep("base")
    caches.lay("pull-7")

    found = (caches.active / "tool").stat()
    assert (0, 0o755, 2) == (found.st_uid, found.st_mode & 0o7777, found.st_nlink)
    assert (APART.uid, 0o644) == (caches.active.stat().st_uid, (caches.active / "private").stat().st_mode & 0o7777)


def test_records(tmp_path: Path) -> None:
    records = Records(tmp_path)
    assert (None, None, [], False) == (records.now(), records.quarantined(), records.jobs(), records.release())

    records.enter(Now("running", "t", 7, "kernelci-a"))
    records.quarantine(Quarantine("t", "GPU lost", ("GPU lost",)))
    for number in range(KEPT_JOBS + 3):
        if number < 3 or number >= KEPT_JOBS:
            records.add(Job(f"kernelci-{number}", "t", "t", "done"))

    assert ("running", "GPU lost", 6) == (records.now().phase, records.quarantined().reason, len(records.jobs()))  # type: ignore[union-attr]
    assert (True, None) == (records.release(), records.quarantined())
    assert 0o644 == (tmp_path / "now.json").stat().st_mode & 0o777


@given(st.binary(max_size=60))
def test_records_that_are_broken_stop_nothing_but_jobs(data: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for name in ("now.json", "jobs.jsonl", "quarantine.json"):
            Path(folder, name).write_bytes(data)
        records = Records(Path(folder))

        assert (None, []) == (records.now(), records.jobs() if data.strip() else [])
        assert records.quarantined() is not None


def test_a_record_that_can_not_be_written_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "now.json").mkdir()
    Records(tmp_path).enter(Now("running", "t"))

    assert "now.json can't be written" in capsys.readouterr().err


def test_the_last_jobs_are_kept(tmp_path: Path) -> None:
    line = json.dumps({"runner": "r", "began": "t", "ended": "t", "how": "done"})
    (tmp_path / "jobs.jsonl").write_text(f"{line}\n" * (KEPT_JOBS + 50))
    Records(tmp_path).add(Job("last", "t", "t", "no job"))

    found = Records(tmp_path).jobs()
    assert (KEPT_JOBS, "last") == (len(found), found[-1].runner)
