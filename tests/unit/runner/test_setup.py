"""GitHub's runner installed as pinned; the units; the script that sets a machine up."""

import functools
import hashlib
import http.server
import os
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kernelci.cli import cli
from kernelci.config import RunnerOptions, load
from kernelci.errors import ConfigError, RunnerBroken
from kernelci.resources import folder
from kernelci.runner import installing, unit
from tests.conftest import Golden

USER = "61999" if os.geteuid() == 0 else ""
SCRIPT = folder("runner") / "setup.sh"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive like GitHub's."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "run.sh").write_text("#!/bin/bash\n")
    (source / "run.sh").chmod(0o755)
    path = tmp_path / "runner.tar.gz"
    with tarfile.open(path, "w:gz") as made:
        made.add(source, ".")
    return path


def _options(archive: Path, **more: str) -> RunnerOptions:
    pinned = {"version": "2.336.0", "sha256": hashlib.sha256(archive.read_bytes()).hexdigest()}
    return RunnerOptions(**{"installation": str(archive.parent / "opt" / "runner"), **pinned, **more})  # type: ignore[arg-type]


@pytest.fixture
def release(archive: Path) -> Iterator[str]:
    """A server with that archive; the pattern of its address."""
    name = f"2.336.0-{installing.MACHINES[os.uname().machine]}"
    shutil.copy(archive, archive.parent / name)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing."""

    handler = functools.partial(Quiet, directory=str(archive.parent))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/{{version}}-{{machine}}"
    server.shutdown()
    server.server_close()


def test_what_is_pinned_is_installed_and_found_again(archive: Path, release: str) -> None:
    options = _options(archive)

    to = installing.install(options, release)
    (to / "kept").touch()

    assert ("2.336.0", True) == (installing.installed(to), os.access(to / "run.sh", os.X_OK))
    assert to == installing.install(options, "http://127.0.0.1:1/not-asked")
    assert (to / "kept").exists()
    assert ["runner"] == [path.name for path in to.parent.iterdir()]


def test_another_version_replaces_it(archive: Path) -> None:
    to = installing.install(_options(archive), archive=archive)
    (to / "old").touch()
    installing.install(_options(archive, version="2.337.0"), archive=archive)

    assert ("2.337.0", False) == (installing.installed(to), (to / "old").exists())


def test_another_checksum_is_refused(archive: Path) -> None:
    options = _options(archive, sha256="0" * 64)

    with pytest.raises(ConfigError, match="and not what is configured"):
        installing.install(options, archive=archive)
    assert [] == list(Path(options.installation).parent.iterdir())


def test_nothing_pinned_nothing_there_no_archive(archive: Path) -> None:
    with pytest.raises(ConfigError, match="which version"):
        installing.install(RunnerOptions())
    with pytest.raises(RunnerBroken, match="ConnectionError") as caught:
        installing.install(_options(archive), "http://127.0.0.1:1/{version}{machine}")
    assert "--archive" in caught.value.hint
    archive.write_bytes(b"no archive")
    with pytest.raises(RunnerBroken, match="can't be unpacked"):
        installing.install(_options(archive), archive=archive)


def test_an_archive_that_leaves_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "bad.tar.gz"
    with tarfile.open(path, "w:gz") as made:
        member = tarfile.TarInfo("../out")
        made.addfile(member)

    with pytest.raises(RunnerBroken, match="can't be unpacked"):
        installing.install(_options(path), archive=path)


@pytest.fixture
def units(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    monkeypatch.setattr("sys.executable", "/opt/kernelci/bin/python")
    (tmp_path / "app.pem").touch()
    found = unit.units(RunnerOptions(), Path("/etc/kernelci"), tmp_path)
    return {name: text.replace(str(tmp_path), "/etc/kernelci") for name, text in found.items()}


def test_units(units: dict[str, str], golden: Golden) -> None:
    golden("runner/units.txt", "\n".join(f"=== {name}\n{text}" for name, text in units.items()))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    paths = unit.write(
        unit.units(RunnerOptions(user="daemon", host_user="root"), tmp_path, tmp_path), tmp_path / "units"
    )
    told = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *paths], capture_output=True, text=True, timeout=60, check=False
    )

    assert [] == [line for line in told.stderr.splitlines() if "kernelci-" in line]


def test_a_broker_elsewhere_has_no_unit(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="systemd makes its folder in /run"):
        unit.units(RunnerOptions(broker="/tmp/socket"), tmp_path, tmp_path)


def test_users_that_are_missing() -> None:
    found = installing.users_missing(RunnerOptions(user="nobody-of-that-name"), "root")

    assert ["useradd --system --no-create-home --shell"] == [line.rpartition(" /")[0] for line in found]


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """A machine whose commands only note that they were called."""
    for name in ("useradd", "systemctl", "python3", "id", "kernelci"):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        fails = "exit 1" if name == "id" else "exit 0"
        path.write_text(f'#!/bin/bash\necho {name} "$@" >> {tmp_path}/calls\n{fails}\n')
        path.chmod(0o755)
    (tmp_path / "etc").mkdir()
    return {
        "PATH": f"{tmp_path}/bin:/usr/bin:/bin", "KERNELCI_ETC": f"{tmp_path}/etc", "KERNELCI_OPT": f"{tmp_path}",
        "KERNELCI_UNITS": f"{tmp_path}/units",
    }  # fmt: skip


def _run(machine: dict[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["bash", SCRIPT, *arguments], env=machine, capture_output=True, text=True, timeout=60, check=False
    )


def test_the_script_sets_a_machine_up_and_may_be_repeated(machine: dict[str, str], tmp_path: Path) -> None:
    token = tmp_path / "etc" / "token"
    token.touch(0o644)
    given = ("octo-org/kernels", "octo-org/kernels/.github/workflows/*.yml@*", "2.336.0", "a" * 64)

    first = _run(machine, *given)
    written = (tmp_path / "etc" / "kernelci.toml").read_text()
    second = _run(machine, "octo-org/other", *given[1:])

    calls = (tmp_path / "calls").read_text().replace(str(tmp_path), "").splitlines()
    assert (0, 0, 0o600) == (first.returncode, second.returncode, token.stat().st_mode & 0o777), (
        first.stderr + second.stderr
    )
    assert written == (tmp_path / "etc" / "kernelci.toml").read_text()
    assert [
        "useradd --system --no-create-home --shell /usr/sbin/nologin kernelci-job",
        "useradd --system --no-create-home --shell /usr/sbin/nologin kernelci-broker",
        "kernelci --root /etc runner setup",
        "kernelci --root /etc runner unit --to /units --credentials /etc",
        "systemctl daemon-reload",
        "systemctl enable --now nvidia-persistenced.service",
        "systemctl enable --now kernelci-broker.service",
        "kernelci --root /etc doctor --runner",
        "systemctl enable --now kernelci-runner.service",
    ] == [call for call in calls[: len(calls) // 2] if not call.startswith("id ")]


def test_the_configuration_that_the_script_writes_is_one(machine: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "etc" / "token").touch(0o600)
    _run(machine, "octo-org/kernels", "octo-org/kernels/*@*", "2.336.0", "a" * 64)

    found = load(tmp_path / "etc").runner
    assert ("octo-org/kernels", ("octo-org/kernels/*@*",), "2.336.0") == (
        found.repository,
        found.workflows,
        found.version,
    )


def test_the_script_says_what_it_wants(machine: dict[str, str]) -> None:
    without_token = _run(machine, "a/b", "c", "1.2.3", "d")

    assert (2, True) == (
        (told := _run(machine)).returncode,
        "setup.sh REPOSITORY WORKFLOWS VERSION SHA256" in told.stderr,
    )
    assert (2, True) == (without_token.returncode, "holds neither token nor app.pem" in without_token.stderr)


def test_the_verbs(tmp_path: Path) -> None:
    (tmp_path / "kernelci.toml").write_text(f'[runner]\nstate = "{tmp_path}/state"\nuser = "{USER}"\n')

    def call(*arguments: str) -> Any:
        return CliRunner().invoke(cli, ["--root", str(tmp_path), "runner", *arguments], standalone_mode=False)

    assert SCRIPT.read_text() == call("setup", "--script").output
    assert "kernelci-broker.service" in call("unit").output
    assert (3, "no loop has run here\n") == ((told := call("status")).return_value, told.output)
    assert "there is no quarantine" in str(call("release").exception)
    assert "no job would be admitted" in str(call("run", "--jobs", "1").exception)


def test_the_configuration_on_the_page_is_one(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "runner.md").read_text(encoding="utf-8")
    block = page.partition("```toml\n")[2].partition("```")[0]
    filled = block.replace('version = "…"', 'version = "2.336.0"').replace('sha256 = "…"', f'sha256 = "{"a" * 64}"')
    (tmp_path / "kernelci.toml").write_text(filled, encoding="utf-8")

    found = load(tmp_path).runner
    assert ("OWNER/NAME", 3, "2.336.0") == (found.repository, len(found.workflows), found.version)
