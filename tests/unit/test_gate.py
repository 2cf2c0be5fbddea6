"""The gate: which floor holds for a row, whether SLOWER blocks, and waivers with an owner, a reason and an end."""

import datetime
from pathlib import Path

import msgspec
import pytest

from kernelci import config
from kernelci.errors import ConfigError
from kernelci.gate import Gate

TODAY = datetime.date(2026, 11, 30)
WAIVER = """
[[gate.waiver]]
kernel = "softmax/*"
owner = "ada"
reason = "exact on denormals now"
expires = 2026-11-30
"""


def _gate(root: Path, text: str, today: datetime.date = TODAY) -> Gate:
    (root / "kernelci.toml").write_text(text, encoding="utf-8")
    return Gate(config.load(root, {}).gate, today)


def test_default(tmp_path: Path) -> None:
    rule = _gate(tmp_path, "").of("softmax/triton", "1x1-fp16")
    assert (0.005, 0.05, True, ()) == (rule.floor, rule.end_to_end_floor, rule.stops, rule.notes)


def test_pyproject(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.kernelci.gate]\nfloor = 0.01\n", encoding="utf-8")
    assert 0.01 == config.load(tmp_path, {}).gate.floor


def test_a_later_rule_overrides_what_it_names(tmp_path: Path) -> None:
    text = """
    [[gate.rule]]
    kernel = "softmax/*"
    floor = 0.02
    blocks = false
    [[gate.rule]]
    case = "*-fp32"
    blocks = true
    """
    gate = _gate(tmp_path, text)
    found = [gate.of(*row) for row in (("softmax/cuda", "8x8-fp32"), ("softmax/cuda", "8x8-bf16"), ("x/y", "8x8-bf16"))]
    assert [(0.02, True), (0.02, False), (0.005, True)] == [(rule.floor, rule.stops) for rule in found]


def test_what_does_not_block_says_so(tmp_path: Path) -> None:
    assert ("the gate's rules let it pass",) == _gate(tmp_path, "[gate]\nblocks = false").of("a/b", "").notes


def test_a_waiver_holds_through_its_last_day(tmp_path: Path) -> None:
    rule = _gate(tmp_path, WAIVER).of("softmax/cuda", "8x8-fp32")
    assert (False, ("waived by ada until 2026-11-30: exact on denormals now",)) == (rule.stops, rule.notes)


def test_an_expired_waiver_is_said_and_holds_no_more(tmp_path: Path) -> None:
    rule = _gate(tmp_path, WAIVER, TODAY + datetime.timedelta(1)).of("softmax/cuda", "8x8-fp32")
    assert (True, ("waiver of ada expired on 2026-11-30: exact on denormals now",)) == (rule.stops, rule.notes)


def test_of_two_waivers_the_longer_one_speaks(tmp_path: Path) -> None:
    later = WAIVER.replace("ada", "bob").replace("2026-11-30", "2026-12-31")
    rule = _gate(tmp_path, WAIVER + later).of("softmax/cuda", "8x8-fp32")
    assert rule.waiver is not None
    assert "bob" == rule.waiver.owner


def test_a_waiver_is_for_its_kernels_alone(tmp_path: Path) -> None:
    assert _gate(tmp_path, WAIVER).of("matmul/cuda", "8x8-fp32").stops


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('owner = "ada"\n', "", "owner"),
        ('owner = "ada"', 'owner = "  "', "owner"),
        ('reason = "exact on denormals now"\n', "", "reason"),
        ("expires = 2026-11-30\n", "", "expires"),
        ("expires = 2026-11-30", 'expires = "soon"', "expires"),
        ('kernel = "softmax/*"\n', "", "kernel"),
        ("owner", "onwer", "onwer"),
    ],
)
def test_an_incomplete_waiver_is_refused(old: str, new: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        _gate(tmp_path, WAIVER.replace(old, new))


@pytest.mark.parametrize("text", ["floor = -0.1", "floor = 1", "blocks = 1", "[gate.rule]\nfloor = 1", "speed = 1"])
def test_a_wrong_gate_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"kernelci\.toml"):
        _gate(tmp_path, f"[gate]\n{text}")


def test_no_variable_overrides_the_gate(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a table stands in a file"):
        config.load(tmp_path, {"KERNELCI_GATE": "floor=1"})


def test_options_survive_a_copy() -> None:
    options = config.GateOptions()
    assert options == msgspec.convert(msgspec.to_builtins(options), config.GateOptions)
