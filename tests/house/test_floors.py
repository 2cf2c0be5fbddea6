"""Lower floors never import higher ones; backends, rungs and reporters never import their siblings."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "kernelci"
# The first prefix that fits a module decides; what is not named here belongs to the command line or to a wing.
FLOORS = {
    "kernelci.errors": 0, "kernelci.reasons": 0, "kernelci.units": 0, "kernelci.model": 0, "kernelci.stats": 0,
    "kernelci.pairing": 0,
    "kernelci.roofline": 0, "kernelci.charts": 0, "kernelci.trend": 0,
    "kernelci.config": 1, "kernelci.catalog": 1, "kernelci.card": 1, "kernelci.results": 1, "kernelci.gpus": 1,
    "kernelci.resources": 1, "kernelci.problems": 1, "kernelci.reference": 1, "kernelci.case": 1,
    "kernelci.inert": 0, "kernelci.measures": 1, "kernelci.fingerprint": 0,
    "kernelci.history": 1,
    "kernelci.digest": 1, "kernelci.attached": 1, "kernelci.gate": 1, "kernelci.budget": 1, "kernelci.comparison": 1,
    "kernelci.git": 1, "kernelci.basing": 1,
    "kernelci.second": 1, "kernelci.answers": 1, "kernelci.feedback": 1, "kernelci.publication": 1,
    "kernelci.unpacking": 0, "kernelci.whole": 0,
    "kernelci.dumps": 1.5, "kernelci.tracing": 1.5,
    "kernelci.workbench": 2, "kernelci.backends": 3, "kernelci.compiling": 3.5, "kernelci.disturbing": 3.6,
    "kernelci.footprint": 3.75,
    "kernelci.rungs": 4, "kernelci.lanes": 0, "kernelci.candidate": 5, "kernelci.court": 5, "kernelci.cold": 5,
    "kernelci.referee": 5, "kernelci.extent": 5, "kernelci.wording": 5,
    "kernelci.losing": 5, "kernelci.ascent": 5, "kernelci.ladder": 5, "kernelci.confinement": 5,
    "kernelci.cli": 6, "kernelci.__main__": 6,
}  # fmt: skip
FAMILIES = ("backends", "rungs", "reporters")


def _modules() -> dict[str, Path]:
    names = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        names[".".join(parts).removesuffix(".__init__")] = path
    return names


def _imports(path: Path) -> set[str]:
    """All modules of this package that a file imports, in functions too; not those that only types need."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return {name for name in found if name in MODULES and name != "kernelci"}


def _floor(name: str) -> float | None:
    return next((floor for prefix, floor in FLOORS.items() if f"{name}.".startswith(f"{prefix}.")), None)


MODULES = _modules()


@pytest.mark.parametrize("name", [name for name in MODULES if _floor(name) is not None])
def test_imports_nothing_above(name: str) -> None:
    own = _floor(name)
    assert own is not None
    above = {other for other in _imports(MODULES[name]) if (_floor(other) or 0) > own}
    assert set() == above


@pytest.mark.parametrize("name", [name for name in MODULES if name.split(".")[1:2] and name.split(".")[1] in FAMILIES])
def test_imports_no_sibling(name: str) -> None:
    family = ".".join(name.split(".")[:2])
    siblings = {other for other in _imports(MODULES[name]) if other.startswith(f"{family}.") and other != name}
    assert set() == siblings


def test_imports_are_found() -> None:
    assert {"kernelci.errors", "kernelci.model"} <= _imports(PACKAGE / "results.py")


@pytest.mark.parametrize("name", [name for name in MODULES if name.startswith(("kernelci.hub", "kernelci.nightly"))])
def test_a_wing_knows_no_floor_above_the_papers(name: str) -> None:
    assert set() == {other for other in _imports(MODULES[name]) if (_floor(other) or 0) > 1}
