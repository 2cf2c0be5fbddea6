"""The two files that `import` proposes: a kernel with its card, and a reference with what is left to complete."""

import ast
import re
from pathlib import Path

from msgspec import Struct

from kernelci import catalog, config, problems, whole
from kernelci.errors import ConfigError
from kernelci.importing.reading import Made, Script, kept, read

TODO = "TODO"
_NUMBER = re.compile(r"\d+")


class Proposal(Struct, frozen=True):
    """Files by path, relative to the project, and what a person must still do."""

    files: dict[Path, str]
    left: tuple[str, ...]


def propose(root: Path, script: Path, name: str = "", entry: str = "") -> Proposal:
    """What a script would become; writes nothing. Raises ConfigError for one without a wrapper around a kernel."""
    options = config.load(root)
    try:
        text = script.read_text(encoding="utf-8")
        found = read(text, entry)
    except (OSError, UnicodeDecodeError, SyntaxError) as error:
        told = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"can't read {script}: {told}", hint="name a script in Python") from error
    if not found.entry:
        known = ", ".join(found.wrappers) or "none"
        told = f"kernels found: {', '.join(found.kernels) or 'none'}; functions that launch one: {known}"
        raise ConfigError(f"{script.name} has no function {entry or 'that launches a kernel'}", hint=told)
    reference = name or found.entry
    stem = re.sub(r"\W", "_", script.stem)
    files = {
        Path(options.references, f"{reference}.py"): _reference(found, reference),
        Path(options.kernels, reference, f"{stem}.py"): _kernel(found, reference),
    }
    return Proposal(files, tuple(_left(found, files)))


def write(root: Path, proposal: Proposal) -> list[Path]:
    """Write the files; overwrites none. Raises ConfigError."""
    taken = [path for path in proposal.files if (root / path).exists()]
    if taken:
        raise ConfigError(f"{taken[0]} is there already", hint="choose another name with --name")
    whole.lay(root, proposal.files)
    catalog.scan(root, config.load(root))
    return list(proposal.files)


def _kernel(found: Script, reference: str) -> str:
    backend = problems.defined(found.text).backend
    card = (
        "# /// script\n"
        f'# dependencies = ["{_WHEELS.get(backend, backend)}"]\n'
        "# [tool.kernelci]\n"
        f'# reference = "{reference}"\n# backend = "{backend}"\n# entry = "{found.entry}"\n'
        "# ///\n"
    )
    return card + kept(found.text)


_WHEELS = {"triton": "triton", "tilelang": "tilelang", "cutedsl": "nvidia-cutlass-dsl", "cuda": "cuda-core"}


def _reference(found: Script, name: str) -> str:
    tensors = _tensors(found)
    sizes = _sizes(found, tensors)
    dtype = next((one.dtype for one in tensors.values() if one.draw != "integers"), "float32")
    values = ", ".join(f"{size}={value}" for size, value in sizes.items())
    small = ", ".join(f"{size}={number}" for size, number in zip(sizes, (3, 17, 33, 5, 7), strict=False))
    inputs = [f'        "{given}": {_drawn(tensors.get(given), sizes)}' for given in found.inputs]
    lines = [
        f'"""{TODO}: say in one line what {name} computes."""',
        "",
        "import torch",
        "",
        "from kernelci.reference import bench, check, like, tensor",
        "",
        "",
        "def cases():",
        f'    for dtype in ("{dtype}",):',
        f"        # {TODO}: at least eight: odd, tiny, one row, one column, no multiple of a tile, empty.",
        f"        yield check(dtype=dtype{', ' + small if small else ''})",
        f'        yield check("as in the script", dtype=dtype{", " + values if values else ""})',
        f'        yield bench("{TODO}: a real model\'s shape", dtype=dtype{", " + values if values else ""})',
        "",
        "",
        "def inputs(case, draw):",
        "    return {",
        *inputs,
        "    }",
        "",
        "",
        "def outputs(case):",
        f'    return {{"y": like("{next(iter(tensors), "x")}")}}  # {TODO}: or tensor(case.…, dtype=case.dtype)',
        "",
        "",
        f"def reference({', '.join(found.inputs)}):",
        *_body(found),
        "",
        "",
        "def cost(case):",
        f"    return 0  # {TODO}: FLOP of a case",
        "",
    ]
    return "\n".join(lines)


def _tensors(found: Script) -> dict[str, Made]:
    """The script's tensors by the entry's parameters: what the checked call passes, else those of the same name."""
    by_name = {one.name: one for one in found.made}
    passed = dict(zip(found.inputs, found.arguments, strict=False)) or dict.fromkeys(found.inputs, "")
    return {given: by_name[source] for given in found.inputs if (source := passed.get(given) or given) in by_name}


def _sizes(found: Script, tensors: dict[str, Made]) -> dict[str, str]:
    """The case's sizes with their values in the script: its own names, or size0, size1 … for plain numbers."""
    sizes: dict[str, str] = {}
    for text in dict.fromkeys(size for one in tensors.values() for size in one.sizes):
        if _NUMBER.fullmatch(text):
            sizes[f"size{len(sizes)}"] = text
        elif text.isidentifier():
            sizes[text] = found.constants.get(text, "128")
    return sizes


def _drawn(made: Made | None, sizes: dict[str, str]) -> str:
    if made is None:
        return f"None,  # {TODO}: a tensor by draw.normal(…), or a number"
    names = {value: name for name, value in sizes.items()}
    shape = [
        f"case.{size}" if size in sizes else f"case.{names[size]}" if size in names else size for size in made.sizes
    ]
    where = ", ".join(shape)
    if made.draw == "integers":
        return f"draw.integers({where}, low=0, high={made.high}, dtype=torch.{made.dtype}),"
    return f"draw.{made.draw}({where}, dtype=case.dtype),"


def _body(found: Script) -> list[str]:
    """The expression of the check, in the entry's names."""
    if not found.reference:
        return [f"    raise NotImplementedError  # {TODO}: slow and obviously right, in torch; called in float64"]
    renamed = {source: given for given, source in zip(found.inputs, found.arguments, strict=False)}
    tree = ast.parse(found.reference, mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = renamed.get(node.id, node.id)
    return [f"    return {ast.unparse(tree)}"]


def _left(found: Script, files: dict[Path, str]) -> list[str]:
    left = [] if found.reference else ["the script compares with nothing by torch: write reference()"]
    if len(found.wrappers) > 1:
        left.append(f"functions that launch a kernel: {', '.join(found.wrappers)}; --entry chooses another")
    for path, text in files.items():
        left += [f"{path}:{number}: {line.strip()}" for number, line in enumerate(text.splitlines(), 1) if TODO in line]
    return left
