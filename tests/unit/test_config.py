"""Options: their order, and one clear message for each wrong value."""

from pathlib import Path
from typing import Any

import pytest

from kernelci import config
from kernelci.errors import ConfigError


def _write(root: Path, text: str, name: str = "kernelci.toml") -> Path:
    (root / name).write_text(text, encoding="utf-8")
    return root


def test_default(tmp_path: Path) -> None:
    assert config.Config() == config.load(tmp_path, {})


def test_file_over_default(tmp_path: Path) -> None:
    assert 7 == config.load(_write(tmp_path, "seeds = 7"), {}).seeds


def test_environment_over_file(tmp_path: Path) -> None:
    assert 8 == config.load(_write(tmp_path, "seeds = 7"), {"KERNELCI_SEEDS": "8"}).seeds


def test_flag_over_environment(tmp_path: Path) -> None:
    assert 9 == config.load(_write(tmp_path, "seeds = 7"), {"KERNELCI_SEEDS": "8"}, {"seeds": 9}).seeds


def test_flag_that_was_not_given_changes_nothing(tmp_path: Path) -> None:
    assert 7 == config.load(_write(tmp_path, "seeds = 7"), {}, {"seeds": None}).seeds


def test_each_source_leaves_the_others_options(tmp_path: Path) -> None:
    loaded = config.load(_write(tmp_path, "seeds = 7"), {"KERNELCI_JOBS": "2"}, {"out": "x"})
    assert (7, 2, "x") == (loaded.seeds, loaded.jobs, loaded.out)


def test_pyproject(tmp_path: Path) -> None:
    assert 5 == config.load(_write(tmp_path, "[tool.kernelci]\nseeds = 5", "pyproject.toml"), {}).seeds


@pytest.mark.parametrize("text", ["", "[tool.other]\nx = 1", "tool = 3", "[project]\nname = 'p'"])
def test_pyproject_without_our_table(tmp_path: Path, text: str) -> None:
    assert config.Config() == config.load(_write(tmp_path, text, "pyproject.toml"), {})


@pytest.mark.parametrize(("text", "on"), [("false", False), ("0", False), ("true", True), ("1", True)])
def test_switch_from_the_environment(tmp_path: Path, text: str, on: bool) -> None:
    assert on == config.load(tmp_path, {"KERNELCI_BASELINES": text}).baselines


def test_list_from_the_environment(tmp_path: Path) -> None:
    assert ("sm_80", "sm_90a") == config.load(tmp_path, {"KERNELCI_TARGETS": "sm_80, sm_90a,"}).targets


def test_other_variables_are_none_of_ours(tmp_path: Path) -> None:
    assert config.Config() == config.load(tmp_path, {"KERNELCI_SURPRISE": "1", "HOME": "/x"})


def _refusal(root: Path, environ: dict[str, str], flags: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        config.load(root, environ, flags)
    return caught.value.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("seeds = 0", "seeds"),
        ("seeds = true", "seeds"),
        ("seeds = 'three'", "seeds"),
        ("seeds = 1.5", "seeds"),
        ("jobs = -1", "jobs"),
        ("targets = 'sm_80'", "targets"),
        ("targets = [80]", "targets"),
        ("call_timeout_s = 0", "call_timeout_s"),
        ("call_timeout_s = nan", "call_timeout_s"),
        ("call_timeout_s = inf", "call_timeout_s"),
        ("memory_bytes = 0", "memory_bytes"),
        ("references = 1", "references"),
        ("sedes = 3", "sedes"),
        ("seeds = ", "Invalid value"),
        ("\xff", "kernelci.toml"),
    ],
)
def test_wrong_value_in_a_file(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "kernelci.toml").write_bytes(text.encode("latin-1"))
    message = _refusal(tmp_path, {}, {})
    assert ("kernelci.toml" in message, said in message) == (True, True)


def test_wrong_value_in_pyproject_names_the_table(tmp_path: Path) -> None:
    message = _refusal(_write(tmp_path, "[tool.kernelci]\nseeds = 0", "pyproject.toml"), {}, {})
    assert message.startswith("pyproject.toml [tool.kernelci]: ")


def test_our_table_is_no_table(tmp_path: Path) -> None:
    message = _refusal(_write(tmp_path, "[tool]\nkernelci = 3", "pyproject.toml"), {}, {})
    assert "pyproject.toml: tool.kernelci is no table" == message


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("KERNELCI_SEEDS", "many", "KERNELCI_SEEDS='many'"),
        ("KERNELCI_SEEDS", "0", "seeds"),
        ("KERNELCI_SEEDS", "", "KERNELCI_SEEDS=''"),
        ("KERNELCI_CALL_TIMEOUT_S", "1 minute", "KERNELCI_CALL_TIMEOUT_S='1 minute'"),
        ("KERNELCI_CALL_TIMEOUT_S", "inf", "call_timeout_s"),
        ("KERNELCI_CALL_TIMEOUT_S", "nan", "call_timeout_s"),
    ],
)
def test_wrong_value_in_the_environment(tmp_path: Path, name: str, text: str, said: str) -> None:
    assert said in _refusal(tmp_path, {name: text}, {})


def test_wrong_flag(tmp_path: Path) -> None:
    message = _refusal(tmp_path, {}, {"jobs": -1})
    assert ("command line" in message, "jobs" in message) == (True, True)


def test_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert (tmp_path / "kernelci", Path("/x")) == (
        config.cache_folder(config.Config()),
        config.cache_folder(config.Config(cache="/x")),
    )


@pytest.mark.parametrize(
    ("flags", "hint"),
    [
        ({"jobs": -1}, "jobs: compile processes at once; 0: one per core"),
        ({"gate": {"floor": -1}}, ""),
        ({"job": 1}, ""),
    ],
)
def test_a_wrong_value_is_told_what_the_option_takes(tmp_path: Path, flags: dict[str, Any], hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config.load(tmp_path, {}, flags)
    assert hint == caught.value.hint


def test_options_in_both_files_are_refused(tmp_path: Path) -> None:
    _write(_write(tmp_path, "seeds = 2"), "[tool.kernelci]\nseeds = 3", "pyproject.toml")
    assert "options stand in kernelci.toml and in pyproject.toml [tool.kernelci]" == _refusal(tmp_path, {}, {})


def test_a_pyproject_without_our_table_stands_beside_our_file(tmp_path: Path) -> None:
    _write(_write(tmp_path, "seeds = 2"), "[tool.ruff]\nline-length = 80", "pyproject.toml")
    assert 2 == config.load(tmp_path, {}).seeds
