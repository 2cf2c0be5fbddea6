"""A script becomes a kernel and a reference to complete; what was not found is left to a person."""

import ast
from pathlib import Path

import pytest

from kernelci import catalog, config, ladder
from kernelci.card import parse
from kernelci.errors import ConfigError
from kernelci.importing.reading import Made, kept, read
from kernelci.importing.writing import propose, write

SCRIPT = Path(__file__).with_name("softmax_script.py")
TEXT = SCRIPT.read_text(encoding="utf-8")
NAMED = """
import torch, triton
@triton.jit
def k(a, b): ...
def add(a, b, alpha):
    k[(1,)](a, b)
M, N = 128, 64
a = torch.rand((M, N), dtype=torch.float16)
b = torch.randint(0, 9, (M, N))
torch.testing.assert_close(a + b, add(a, b, 2.0))
"""


def test_the_wrapper_that_is_checked_is_the_entry() -> None:
    found = read(TEXT)
    assert (("softmax_kernel",), ("softmax",), "softmax") == (found.kernels, found.wrappers, found.entry)


def test_what_it_is_compared_with() -> None:
    assert "torch.softmax(data, axis=1)" == read(TEXT).reference


def test_the_scripts_tensors() -> None:
    assert (Made("data", "normal", ("183", "78")),) == read(TEXT).made


def test_sizes_that_have_names() -> None:
    found = read(NAMED)
    made = {one.name: one for one in found.made}
    assert Made("a", "uniform", ("M", "N"), "float16") == made["a"]
    assert Made("b", "integers", ("M", "N"), "int64", "9") == made["b"]
    assert {"M": "128", "N": "64"} == found.constants


def test_the_check_may_stand_either_way_round() -> None:
    assert ("add", "a + b") == (read(NAMED).entry, read(NAMED).reference)


def test_what_acts_is_left_out() -> None:
    names = [getattr(node, "name", type(node).__name__) for node in ast.parse(kept(TEXT)).body]
    assert ["Expr", "Import", "Import", "Import", "Assign", "softmax_kernel", "softmax"] == names


def test_the_kernel_has_a_card(tmp_path: Path) -> None:
    made = propose(tmp_path, SCRIPT).files[Path("kernels/softmax/softmax_script.py")]
    card = parse(made)
    assert ("softmax", "triton", "softmax") == (card.reference, card.backend, card.entry)


def test_the_reference_speaks_in_the_entrys_names(tmp_path: Path) -> None:
    made = propose(tmp_path, SCRIPT).files[Path("references/softmax.py")]
    assert "def reference(x):\n    return torch.softmax(x, axis=1)" in made
    assert '"x": draw.normal(case.size0, case.size1, dtype=case.dtype)' in made


def test_what_is_no_tensor_is_left(tmp_path: Path) -> None:
    (tmp_path / "add.py").write_text(NAMED, encoding="utf-8")
    found = propose(tmp_path, tmp_path / "add.py")
    assert any('"alpha": None' in line for line in found.left)


def test_both_files_are_python(tmp_path: Path) -> None:
    (tmp_path / "add.py").write_text(NAMED, encoding="utf-8")
    for script in (SCRIPT, tmp_path / "add.py"):
        for text in propose(tmp_path, script).files.values():
            ast.parse(text)


def test_another_name(tmp_path: Path) -> None:
    assert Path("references/rows.py") in propose(tmp_path, SCRIPT, name="rows").files


@pytest.mark.parametrize(
    ("text", "said"),
    [("x = 1", "no function that launches a kernel"), ("def f(:", "can't read"), (NAMED, "no function other")],
)
def test_a_script_without_a_kernel(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "script.py").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=said):
        propose(tmp_path, tmp_path / "script.py", entry="other" if "other" in said else "")


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    write(tmp_path, propose(tmp_path, SCRIPT))
    with pytest.raises(ConfigError, match="is there already"):
        write(tmp_path, propose(tmp_path, SCRIPT))


def test_a_proposal_is_judged_as_it_is(tmp_path: Path) -> None:
    write(tmp_path, propose(tmp_path, SCRIPT))
    options = config.load(tmp_path, {}, {"cache": str(tmp_path / "cache"), "targets": ("sm_90a",)})
    found = catalog.scan(tmp_path, options)
    report = ladder.climb(found, options, ladder.Plan(found.kernels, tmp_path / "out", ("correctness",)))
    assert ("PASSED", None) == (report.kernels[0].outcome, report.kernels[0].stopped_at)
