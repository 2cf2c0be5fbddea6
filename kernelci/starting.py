"""What `new` writes: a kernel that already passes precheck and compile, and says what is left to do."""

import re
from importlib.resources import files
from pathlib import Path

from kernelci import backends, catalog, config, whole
from kernelci.errors import ConfigError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*/[A-Za-z0-9_-]+")


def create(root: Path, name: str, backend: str) -> list[Path]:
    """Write the files of a new kernel `REFERENCE/NAME`; their paths. Raises ConfigError, and overwrites nothing."""
    root = root.resolve()
    options = config.load(root)
    reference = _checked(root, options, name, backend)
    folder = root / options.kernels / reference.stem
    made = {
        folder / f"{name.partition('/')[2]}{suffix}": text for suffix, text in _rendered(reference, backend).items()
    }
    taken = [path for path in made if path.exists()]
    if taken:
        raise ConfigError(f"{taken[0].relative_to(root)} is there already", hint="choose another name")
    whole.lay(root, made)
    return [path.relative_to(root) for path in made]


def starters() -> list[str]:
    """The backends that there is a starter for."""
    folder = files("kernelci") / "data" / "starters"
    return [name for name in backends.names() if (folder / f"{name}.py.j2").is_file()]


def _checked(root: Path, options: config.Config, name: str, backend: str) -> Path:
    """The reference's file."""
    if backend not in starters():
        raise ConfigError(f"no backend {backend!r}", hint=f"known: {', '.join(starters())}")
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{name!r} is not REFERENCE/NAME", hint="for example softmax/mine")
    references = catalog.references(root / options.references)
    reference = name.partition("/")[0]
    if reference not in references:
        known = ", ".join(references) or f"none; write {options.references}/{reference}.py first"
        raise ConfigError(f"no reference {reference!r}", hint=f"known: {known}")
    return references[reference]


def _rendered(path: Path, backend: str) -> dict[str, str]:
    """The starter's files by suffix: `.py`, and for CUDA C++ a `.cu`."""
    from jinja2 import Environment, StrictUndefined

    from kernelci.compiling.builder import call_of
    from kernelci.reference import ReferenceFailed, load

    try:
        reference = load(path)
        call = call_of(reference, reference.cases()[0])
    except ReferenceFailed as error:
        raise ConfigError(str(error), code="reference") from error
    values = {"reference": reference.name, "inputs": list(call.arguments), "outputs": list(call.outputs)}
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)
    folder = files("kernelci") / "data" / "starters"
    return {
        suffix: environment.from_string(template.read_text(encoding="utf-8")).render(values)
        for suffix in (".py", ".cu")
        if (template := folder / f"{backend}{suffix}.j2").is_file()
    }
