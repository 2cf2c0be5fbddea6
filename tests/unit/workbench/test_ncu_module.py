"""Reports read by NVIDIA's module, in the sandbox: a stand-in with its interface, and the real one where it is."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci.workbench import counters, ncu_module, profiler
from kernelci.workbench.ncu_report import Unreadable

# As much of the interface as is used, over a report that is JSON: a list of launches.
STAND_IN = """
import json
MsgType_NONE, MsgType_OK, MsgType_OPTIMIZATION, MsgType_WARNING, MsgType_ERR = range(5)

class Metric:
    def __init__(self, value, unit): self._value, self._unit = value, unit
    def has_value(self): return self._value is not None
    def value(self): return float(self._value) if self._value in ("nan", "inf") else self._value
    def unit(self): return self._unit

class Action:
    def __init__(self, told): self._told = told
    def name(self): return self._told["name"]
    def metric_names(self): return tuple(self._told["metrics"])
    def metric_by_name(self, name): return Metric(*self._told["metrics"][name])
    def rule_results_as_dicts(self): return self._told["rules"]

class Several:
    def __init__(self, told): self._told = told
    def num_ranges(self): return 1 if self._told else 0
    def range_by_idx(self, number): return self
    def num_actions(self): return len(self._told)
    def action_by_idx(self, number): return Action(self._told[number])

def load_report(path):
    try:
        return Several(json.load(open(path)))
    except ValueError:
        return Several([])  # as the real one answers to what is none of its own
"""
RULES = [
    {"rule_identifier": "CPIStall", "rule_message": {"message": "waits", "type": 2},
     "speedup_estimation": {"type": 2, "speedup": 18.5}},
    {"rule_identifier": "Shared", "rule_message": {"message": "See @section:Mem:Memory@.", "type": 3},
     "speedup_estimation": {"type": 1, "speedup": 21.0}},
    {"rule_identifier": "Launch", "rule_message": {"message": "All is well.", "type": 0}},
    {"rule_identifier": "Silent"},
]  # fmt: skip
METRICS = {
    "gpu__time_duration.sum": (120_000.0, "ns"),
    "dram__bytes_read.sum": (268_435_456, "byte"),
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": (81.5, "%"),
    "launch__grid_dim_x": (65_536.0, ""), "launch__grid_dim_y": (1.0, ""), "launch__grid_dim_z": (1.0, ""),
    "launch__occupancy_limit_registers": (None, "block"),
    "device__attribute_display_name": ("a GPU", ""),
    "smsp__average.ratio": ("nan", ""),
    "plain": (3, ""),
}  # fmt: skip
LAUNCHES = [
    {"name": "softmax_tile", "metrics": METRICS, "rules": RULES},
    {"name": "tail", "metrics": {"gpu__time_duration.sum": (3_000, "ns")}, "rules": []},
]


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A folder with the stand-in, where the sandbox's user can see it."""
    folder = tmp_path / "module"
    folder.mkdir(mode=0o755)
    (folder / "ncu_report.py").write_text(STAND_IN, encoding="utf-8")
    tmp_path.chmod(0o755)
    return folder


def test_launches_with_their_metrics_and_rules(module: Path) -> None:
    first, second = profiler.by_module(module, json.dumps(LAUNCHES).encode())
    assert ("softmax_tile", "(65,536, 1, 1)", "", "tail") == (first.kernel, first.grid, first.block, second.kernel)
    assert {
        "gpu__time_duration.sum": 120_000.0,
        "dram__bytes_read.sum": 268_435_456.0,
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": pytest.approx(0.815),
    } == {name: value for name, value in first.metrics.items() if not name.startswith("launch__")}
    assert [("Shared", "WRN", "See Memory.", 0.21), ("CPIStall", "OPT", "waits", 0.185)] == [
        (each.rule, each.kind, each.text, each.speedup) for each in first.advice[:2]
    ]
    assert "INF" == first.advice[2].kind
    assert 123_000.0 == next(each.value for each in counters.figures((first, second)) if each.tag == "profile_time")


@pytest.mark.parametrize("report", [b"", b"a report", b"[]", b'[{"name": "no metrics"}]', b"[[]]"])
def test_what_is_no_report_of_its_own_is_refused(module: Path, report: bytes) -> None:
    with pytest.raises(Unreadable):
        profiler.by_module(module, report)


@pytest.mark.parametrize("report", [b"", b"a report", b"NVR\0\2\0\0\0" + bytes(64)])
def test_the_real_module_refuses_a_foreign_report(tmp_path: Path, report: bytes) -> None:
    module = ncu_module.folder(tmp_path)
    if module is None:
        pytest.skip("ncu-report is not installed")
    with pytest.raises(Unreadable):
        profiler.by_module(module, report)


def _printed(**changed: Any) -> bytes:
    one = {"kernel": "k", "grid": [1, 1, 1], "block": [1, 1, 1], "metrics": {"a__b": [1.0, "ns"]}, "rules": []}
    return json.dumps([one | changed]).encode()


@pytest.mark.parametrize(
    "changed",
    [
        {"kernel": "k" * 301},
        {"more": 1},
        {"grid": [1, 1]},
        {"grid": [-1, 1, 1]},
        {"metrics": {"a__b": [1e301, "ns"]}},
        {"metrics": {"a__b": [1.0, "u" * 41]}},
        {"rules": [{"name": "n", "kind": "OPT", "text": "t"}]},
    ],
)
def test_what_the_sandbox_prints_is_bounded(changed: dict[str, Any]) -> None:
    assert 1 == len(ncu_module.decoded(_printed()))
    with pytest.raises(Unreadable):
        ncu_module.decoded(_printed(**changed))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(text: bytes) -> None:
    with contextlib.suppress(Unreadable):
        ncu_module.decoded(text)


def test_the_module_beside_the_tool_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    home = tmp_path / "nsight-compute" / "2026.1"
    (home / "extras" / "python").mkdir(parents=True)
    assert None is ncu_module.folder(home)
    (home / "extras" / "python" / "ncu_report.py").write_text("")
    assert home / "extras" / "python" == ncu_module.folder(home)
