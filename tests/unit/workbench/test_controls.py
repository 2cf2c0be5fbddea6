"""Controls: the repository's references are sound, weak ones are found, and the answer is kept by content."""

from pathlib import Path

import pytest

from kernelci.reference import Reference, load
from kernelci.workbench import controls

ROOT = Path(__file__).resolve().parents[3]
GOOD = """
import torch
from kernelci.reference import check, like

def cases():
    yield check(n=300, m=4, k=2.0, dtype="float32")

def inputs(case, draw):
    return {"x": draw.normal(case.m, case.n, dtype=case.dtype), "k": case.k}

def outputs(case):
    return {"y": like("x")}

def reference(x, k):
    return x.exp() * k
"""


def _reference(folder: Path, *changes: tuple[str, str]) -> Reference:
    text = GOOD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "scale.py"
    path.write_text(text, encoding="utf-8")
    return load(path)


@pytest.mark.parametrize("name", [path.stem for path in sorted((ROOT / "references").glob("*.py"))])
def test_our_references_are_sound(name: str) -> None:
    controls.check(load(ROOT / "references" / f"{name}.py"), "cpu")


def test_a_good_one(tmp_path: Path) -> None:
    controls.check(_reference(tmp_path), "cpu")


def test_a_copy_is_right_where_the_operation_copies(tmp_path: Path) -> None:
    controls.check(_reference(tmp_path, ("x.exp() * k", "x.clone() * (k / k if k == 2 else k)")), "cpu")


@pytest.mark.parametrize(
    ("old", "new", "reason", "said"),
    [
        ("x.exp() * k", "x * 0 * k", "weak-reference", "zeros would pass as y"),
        ("x.exp() * k", "x * 0 + k", "weak-reference", "a constant would pass as y"),
        ("x.exp() * k", "x.exp()", "idle-input", "when k changes"),
        ("def reference", "budget = Budget(worst=1e9, rmse=1e9)\n\ndef reference", "weak-reference", "would pass"),
        ("def reference", "def compare(*a):\n    return ''\n\ndef reference", "weak-reference", "would pass"),
        ("def reference", "def compare(*a):\n    return 'no'\n\ndef reference", "strict-reference", "refused by no"),
        ("x.exp() * k", "x * (1 + 1e-7 * k)", "weak-reference", "a copy of the input would pass as y"),
    ],
)
def test_weak(tmp_path: Path, old: str, new: str, reason: str, said: str) -> None:
    found = _reference(tmp_path, (old, new), ("import check, like", "import Budget, check, like"))
    with pytest.raises(controls.Weak) as caught:
        controls.check(found, "cpu")
    assert (reason, True) == (caught.value.reason, said in caught.value.message)


def test_two_outputs_each_alone(tmp_path: Path) -> None:
    found = _reference(
        tmp_path, ('{"y": like("x")}', '{"y": like("x"), "z": like("x")}'), ("x.exp() * k", "x.exp() * k, x * 0")
    )
    with pytest.raises(controls.Weak, match="zeros would pass as z"):
        controls.check(found, "cpu")


@pytest.mark.parametrize("weak", [False, True])
def test_kept_by_content(tmp_path: Path, weak: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found = _reference(tmp_path, *((("x.exp() * k", "x * 0 * k"),) if weak else ()))
    outcomes = []
    for _ in range(2):
        try:
            controls.check(found, "cpu", tmp_path / "cache")
            outcomes.append("")
        except controls.Weak as error:
            outcomes.append(error.reason)
        monkeypatch.setattr(controls, "_examined", None)  # the second answer must come from the cache
    assert ["weak-reference" if weak else ""] * 2 == outcomes


def test_the_key_changes_with_the_reference(tmp_path: Path) -> None:
    first = controls.key(_reference(tmp_path), "cpu")
    assert first != controls.key(_reference(tmp_path, ("k=2.0", "k=3.0")), "cpu")


@pytest.mark.parametrize("text", ["", "{", "3", '["a"]', '{"a": 1}'])
def test_a_damaged_cache_is_no_answer(tmp_path: Path, text: str) -> None:
    found = _reference(tmp_path)
    path = tmp_path / f"{controls.key(found, 'cpu')}.json"
    path.write_text(text, encoding="utf-8")
    controls.check(found, "cpu", tmp_path)
    assert "[]" == path.read_text(encoding="utf-8")
