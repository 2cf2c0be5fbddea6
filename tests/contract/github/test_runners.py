"""The broker and GitHub: what registers runners, held against GitHub's own API description; and who gets nothing."""

import base64
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from kernelci.config import RunnerOptions
from kernelci.errors import ConfigError, HubError, RunnerBroken, TokenError
from kernelci.hub.client import Client, Patience
from kernelci.runner import broker
from kernelci.runner.broker import Answer, Broker, GitHubAway, Question
from kernelci.runner.registrar import Registrar, from_credentials
from tests.conftest import load

QUICK = Patience(attempts=2, backoff_s=0.01, longest_s=0.1, secondary_s=0.02, timeout_s=5, pace_s=0)
LABELS = ("self-hosted", "linux", "ephemeral", "gpu", "gpu:h200", "sm_90a", "gpus:8", "driver:570.86.15")


@pytest.fixture(scope="module")
def key() -> tuple[str, str]:
    """An App's key pair in PEM."""
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = made.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = made.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


@pytest.fixture
def serving(github: Any) -> Iterator[Callable[..., Path]]:
    """Start a broker for so many questions; its socket."""
    folder = Path(tempfile.mkdtemp(prefix="kci"))
    started: list[tuple[Broker, threading.Thread]] = []

    def start(times: int = 1, serves: int = os.getuid(), place: str = "octo-org/kernels", **more: Any) -> Path:
        registrar = Registrar(place, 1, lambda: "right-token", github.url, QUICK)
        made = Broker(registrar, folder / "socket", serves, **more)
        thread = threading.Thread(target=made.serve, args=(times,))
        thread.start()
        started.append((made, thread))
        return folder / "socket"

    yield start
    for made, thread in started:
        thread.join(10)
        made.close()
    folder.rmdir()


@pytest.mark.parametrize(("place", "group"), [("octo-org/kernels", 1), ("octo-org", 7)])
def test_a_runner_is_registered_as_the_description_says(proxied: tuple[Any, str], place: str, group: int) -> None:
    hub, url = proxied
    name = f"kernelci-{place.replace('/', '-')}"

    config, now = Registrar(place, group, lambda: hub.token, url, QUICK).jitconfig(name, LABELS)

    registered = {"name": name, "runner_group_id": group, "labels": list(LABELS), "work_folder": "_work"}
    assert registered == hub.runners[-1]
    assert ("a2VybmVsY2kt", True) == (config[:12], now is not None)


def test_a_name_that_is_taken_and_a_group_that_is_not_ours(proxied: tuple[Any, str]) -> None:
    hub, url = proxied
    registrar = Registrar("octo-org", 7, lambda: hub.token, url, QUICK)
    registrar.jitconfig("kernelci-twice", LABELS)

    with pytest.raises(ConfigError, match=r"no such runner: .* 409"):
        registrar.jitconfig("kernelci-twice", LABELS)
    with pytest.raises(TokenError, match="404"):
        Registrar("octo-org", 5, lambda: hub.token, url, QUICK).jitconfig("kernelci-other", LABELS)


def test_an_app_gets_a_token_for_its_installation(
    proxied: tuple[Any, str], key: tuple[str, str], tmp_path: Path
) -> None:
    hub, url = proxied
    hub.app = (12, key[1])
    (tmp_path / "app.pem").write_text(key[0])
    options = RunnerOptions(app=12, app_installation=34)

    token = from_credentials(tmp_path, options, url)

    assert hub.token == token()
    with pytest.raises(TokenError, match="a token of App 13: 404"):
        from_credentials(tmp_path, RunnerOptions(app=13, app_installation=34), url)()


def test_an_app_whose_machine_has_the_wrong_time_is_told_so(
    github: Any, key: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    github.app = (12, key[1])
    (tmp_path / "app.pem").write_text(key[0])
    encode = jwt.encode

    def ahead(claims: dict[str, Any], *more: Any, **named: Any) -> str:
        return encode({**claims, "iat": claims["iat"] + 900, "exp": claims["exp"] + 900}, *more, **named)

    monkeypatch.setattr(jwt, "encode", ahead)

    with pytest.raises(TokenError) as caught:
        from_credentials(tmp_path, RunnerOptions(app=12, app_installation=34), github.url)()

    assert "is this machine's clock right?" in caught.value.hint


def test_credentials(tmp_path: Path) -> None:
    with pytest.raises(TokenError, match="neither"):
        from_credentials(tmp_path, RunnerOptions(), "")
    (tmp_path / "token").write_text(" secret\n")
    assert "secret" == from_credentials(tmp_path, RunnerOptions(), "")()
    (tmp_path / "app.pem").write_text("no key")
    with pytest.raises(ConfigError, match="no App is named"):
        from_credentials(tmp_path, RunnerOptions(), "")
    with pytest.raises(HubError, match="no answer"):
        Registrar("a/b", 1, lambda: "token", "http://127.0.0.1:1", QUICK).jitconfig("kernelci-a", LABELS)
    with pytest.raises(TokenError, match="can't be used"):
        from_credentials(tmp_path, RunnerOptions(app=1, app_installation=2), "http://127.0.0.1:1")()


def test_the_clock_is_githubs(github: Any) -> None:
    found = Client("octo-org/kernels", "right-token", github.url, QUICK).clock()

    assert found is not None
    assert 1.7e9 < found < 5e9


def test_the_broker_hands_out_a_configuration_and_no_token(github: Any, serving: Callable[..., Path]) -> None:
    answer = broker.ask(serving(), Question("kernelci-a-1", LABELS), 10)

    assert ("kernelci-a-1", "") == (github.runners[0]["name"], answer.error)
    assert "right-token" not in repr(answer)


@pytest.mark.parametrize(
    ("name", "labels", "why"),
    [
        ("other", LABELS, "is no name of a runner"),
        ("kernelci-../x", LABELS, "is no name of a runner"),
        ("kernelci-a", ("gpu", "self-hosted"), "the labels lack ephemeral"),
        ("kernelci-a", (*LABELS, "a b"), "signs that labels don't have"),
    ],
)
def test_what_the_broker_refuses(
    github: Any, serving: Callable[..., Path], name: str, labels: tuple[str, ...], why: str
) -> None:
    with pytest.raises(RunnerBroken, match=why):
        broker.ask(serving(), Question(name, labels), 10)
    assert [] == github.requests


def test_too_many(github: Any, serving: Callable[..., Path]) -> None:
    path = serving(3, per_hour=2)
    for number in range(2):
        broker.ask(path, Question(f"kernelci-{number}", LABELS), 10)

    with pytest.raises(GitHubAway, match="more than 2 runners within an hour"):
        broker.ask(path, Question("kernelci-2", LABELS), 10)


def test_another_user_gets_nothing(github: Any, serving: Callable[..., Path]) -> None:
    with pytest.raises(RunnerBroken, match=f"user {os.getuid()} is not served here"):
        broker.ask(serving(serves=os.getuid() + 1), Question("kernelci-a", LABELS), 10)
    assert [] == github.requests


@pytest.mark.parametrize(
    "sent", [b"", b"{}\n", b'{"name": 1}\n', b"x" * 300_000, b'{"name": "kernelci-a", "labels": [], "more": 1}\n']
)
def test_nonsense_is_not_answered_and_ends_nothing(github: Any, serving: Callable[..., Path], sent: bytes) -> None:
    path = serving(2)
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.settimeout(10)
        stranger.connect(str(path))
        try:
            stranger.sendall(sent)
            stranger.shutdown(socket.SHUT_WR)
            heard = stranger.recv(100)
        except ConnectionError:
            heard = b""

    assert (b"", Answer) == (heard, type(broker.ask(path, Question("kernelci-a", LABELS), 10)))


def test_github_is_away(github: Any, serving: Callable[..., Path]) -> None:
    path = serving(2)
    github.fail("POST", "generate-jitconfig", 503, times=2)

    with pytest.raises(GitHubAway, match="503"):
        broker.ask(path, Question("kernelci-a", LABELS), 10)
    assert "" == broker.ask(path, Question("kernelci-a", LABELS), 10).error


def test_a_token_that_may_not_register_is_said_so(github: Any, serving: Callable[..., Path]) -> None:
    github.denied.append(("POST", "generate-jitconfig"))

    with pytest.raises(RunnerBroken, match="administration: write"):
        broker.ask(serving(), Question("kernelci-a", LABELS), 10)


def test_a_broker_by_its_verb(github: Any, tmp_path: Path) -> None:
    """A process of its own, where this test can have another user; else it says why it does not start."""
    folder = Path(tempfile.mkdtemp(prefix="kci"))
    folder.chmod(0o777)
    (tmp_path / "token").write_text("right-token")
    user = "nobody" if os.geteuid() == 0 else str(os.getuid())
    (tmp_path / "kernelci.toml").write_text(
        f'[runner]\nrepository = "octo-org/kernels"\nbroker = "{folder}/socket"\nhost_user = "{user}"\n'
    )
    command = [
        sys.executable,
        "-m",
        "kernelci",
        "--root",
        str(tmp_path),
        "runner",
        "broker",
        "--credentials",
        str(tmp_path),
    ]

    process = subprocess.Popen([*command, "--api", github.url], stderr=subprocess.PIPE, text=True)
    if os.geteuid() != 0:
        assert "runs as" in process.communicate(timeout=60)[1]
        folder.rmdir()
        return
    while not (folder / "socket").exists():
        assert process.poll() is None
    with pytest.raises(RunnerBroken, match="user 0 is not served here"):
        broker.ask(folder / "socket", Question("kernelci-a", LABELS), 10)
    process.terminate()
    said = process.communicate(timeout=30)[1]
    (folder / "socket").unlink(missing_ok=True)
    folder.rmdir()

    assert ("asked for a runner" in said, 0) == (True, process.returncode)


@pytest.fixture
def at_work() -> Iterator[Any]:
    """A host with a stand-in for GitHub's runner, as tests/unit/runner has it."""
    module = load(Path(__file__).parents[2] / "unit" / "runner" / "conftest.py", "hosts_at_work")
    folder = Path(tempfile.mkdtemp(prefix="kci", dir="/var/tmp"))
    folder.chmod(0o755)
    host = module.HostAtWork(folder)
    host.pull = {"env": module.PULL, "steps": ["true"]}
    yield host
    for process in host.started:
        module.end(process)
    subprocess.run(["rm", "-rf", folder], check=True)


def test_from_github_to_a_clean_host_and_back_with_github_away_in_between(
    github: Any, serving: Callable[..., Path], at_work: Any
) -> None:
    at_work.options["broker"] = str(serving(4))
    at_work.plan(*[at_work.pull] * 3)
    github.fail("GET", "/rate_limit", 503, times=2)

    code, said = at_work.run(3)

    names = [each["name"] for each in github.runners]
    assert (0, ["done"] * 3, 1) == (code, [job.how for job in at_work.jobs], said.count("GitHub is away")), said
    assert names == [job.runner for job in at_work.jobs]
    assert [f"config {base64.b64encode(name.encode()).decode()}" for name in names] == [
        line for line in at_work.noted.splitlines() if line.startswith("config")
    ]
    assert [
        {"self-hosted", "ephemeral", "gpu:h200", "sm_90a", "gpus:1"} - set(each["labels"]) for each in github.runners
    ] == [set()] * 3
