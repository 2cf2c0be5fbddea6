"""Errors of the tool: one message, a next step, an exit code."""

import errno
import os
import tomllib
from pathlib import Path

import pytest

from kernelci import errors
from kernelci.__main__ import EXTRAS, _unforeseen, once
from kernelci.reasons import REASONS

KINDS = [
    (errors.ConfigError, 2),
    (errors.CardError, 2),
    (errors.ReportError, 2),
    (errors.NothingToDo, 3),
    (errors.RunnerBroken, 4),
    (errors.KernelciError, 70),
]


@pytest.mark.parametrize(("kind", "exit_code"), KINDS)
def test_exit_code(kind: type[errors.KernelciError], exit_code: int) -> None:
    assert exit_code == kind("text").exit_code


@pytest.mark.parametrize("kind", [kind for kind, _ in KINDS])
def test_code_can_be_explained(kind: type[errors.KernelciError]) -> None:
    assert kind("text").code in REASONS


def test_rendered_with_hint() -> None:
    error = errors.ConfigError("no folder x", hint="make it", code="no-kernels")
    assert "error[no-kernels]: no folder x\n  next: make it" == error.rendered()


def test_rendered_without_hint_has_the_next_step_of_its_code() -> None:
    next_step = REASONS["runner"].next_step
    assert f"error[runner]: gone\n  next: {next_step}" == errors.RunnerBroken("gone").rendered()


@pytest.mark.parametrize(("number", "kind", "code"), [
    (errno.ENOSPC, errors.RunnerBroken, "no-space"),
    (errno.EDQUOT, errors.RunnerBroken, "no-space"),
    (errno.EACCES, errors.ConfigError, "output-folder"),
])  # fmt: skip
def test_whose_fault_it_is_that_a_place_can_not_be_written(number: int, kind: type, code: str) -> None:
    found = errors.unwritten(Path("/out"), OSError(number, os.strerror(number)))
    assert (kind, code, f"can't write to /out: {os.strerror(number)}") == (type(found), found.code, found.message)


def test_verdict_is_no_error_of_the_tool() -> None:
    assert not isinstance(errors.Stop("wrong", "text"), errors.KernelciError)


def test_a_second_interrupt_does_not_stop_the_clearing_up() -> None:
    now = iter([0.0, 1.0, 9.0, 9.0])
    handle = once(lambda: next(now))

    with pytest.raises(KeyboardInterrupt):
        handle(2, None)
    handle(2, None)
    with pytest.raises(KeyboardInterrupt):
        handle(2, None)


@pytest.mark.parametrize(
    ("name", "extra"), [("torch", "all"), ("cuda.core", "all"), ("github", "github"), ("mcp", "context")]
)
def test_a_package_that_a_light_installation_lacks_is_named_with_its_extra(
    capsys: pytest.CaptureFixture[str], name: str, extra: str
) -> None:
    code = _unforeseen(ModuleNotFoundError(f"No module named {name!r}", name=name))
    said = f"error[configuration]: {name} is not installed\n  next: pip install 'kernelci[{extra}]'\n"
    assert (2, said) == (code, capsys.readouterr().err)


def test_a_module_of_ours_that_is_missing_is_a_bug(capsys: pytest.CaptureFixture[str]) -> None:
    code = _unforeseen(ModuleNotFoundError("No module named 'kernelci.nope'", name="kernelci.nope"))
    assert (70, True) == (code, "This is a bug in kernelci" in capsys.readouterr().err)


def test_every_extra_that_a_message_names_is_one_of_ours() -> None:
    with (Path(__file__).resolve().parents[2] / "pyproject.toml").open("rb") as file:
        known = tomllib.load(file)["project"]["optional-dependencies"]
    assert set() == set(EXTRAS.values()) - set(known)
