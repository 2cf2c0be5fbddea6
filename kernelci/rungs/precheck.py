"""precheck: card, reference, entry's signature, the file parses, its dependencies are there. Runs no kernel code."""

import ast
import importlib.metadata

from packaging.requirements import InvalidRequirement, Requirement

from kernelci import backends, gpus, problems
from kernelci.compiling.builder import call_of
from kernelci.errors import Stop
from kernelci.rungs import Findings, Referee, rung

STREAMS = frozenset({
    "default_stream", "legacy_default", "per_thread_default", "legacy_default_stream", "per_thread_default_stream",
    "LEGACY_DEFAULT_STREAM", "PER_THREAD_DEFAULT_STREAM", "cudaStreamLegacy", "cudaStreamPerThread",
    "CU_STREAM_LEGACY", "CU_STREAM_PER_THREAD",
})  # fmt: skip
CAUTION = "a masked tl.load without other= reads zeros in the interpreter and undefined values on a GPU"


@rung("precheck")
def precheck(referee: Referee) -> Findings:
    """See the module's docstring."""
    card = referee.card
    if card.backend not in backends.names():
        raise Stop("unknown-backend", f"backend {card.backend!r}; known are {', '.join(backends.names())}")
    if message := gpus.unknown(card.targets):
        raise Stop("card", message)
    if referee.kernel.path.suffix == ".json":
        return _generated(referee)
    tree = _parse(referee)
    if card.entry == problems.ENTRY:
        return _solution(referee, tree)
    entry = _function(tree, card.entry)
    if entry is None:
        names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        raise Stop("entry-missing", f"no function {card.entry!r}; the file defines {', '.join(names) or 'none'}")
    _check_signature(referee, entry)
    check_dependencies(card.dependencies)
    return Findings(notes=[*referee.reference.notes, *_cautions(tree)])


def _generated(referee: Referee) -> Findings:
    """The Python files that a solution's JSON holds parse, and its definition is there."""
    reference, kernel = referee.reference, referee.kernel
    if not kernel.generated:
        raise Stop("entry-signature", f"the reference {reference.name} is no definition of flashinfer-bench")
    notes: list[str] = []
    for name, content in kernel.generated.items():
        try:
            notes += _cautions(ast.parse(content, filename=name)) if name.endswith(".py") else []
        except SyntaxError as error:
            raise Stop("syntax", f"{name}: {error.msg} (line {error.lineno})", file=str(kernel.path)) from error
    return Findings(notes=[*reference.notes, *notes])


def _solution(referee: Referee, tree: ast.Module) -> Findings:
    """A class in place of an entry: it needs a `forward`, and its problem a case."""
    model = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == problems.SOLUTION)
    own = [node.name for node in model.body if isinstance(node, ast.FunctionDef)]
    if "forward" not in own and not model.bases:
        text = f"{problems.SOLUTION} has no forward(); it defines {', '.join(own) or 'nothing'}"
        raise Stop("entry-missing", text, file=str(referee.kernel.path), line=model.lineno)
    reference = referee.reference
    if not reference.one_shape:
        text = f"{problems.SOLUTION} answers a problem that defines {problems.MODEL}, and {reference.name} does not"
        raise Stop("entry-signature", text, file=str(referee.kernel.path), line=model.lineno)
    told = f"{problems.SOLUTION} without a card: backend {referee.card.backend} by its imports"
    return Findings(notes=[told, *reference.notes, *_cautions(tree)])


def _parse(referee: Referee) -> ast.Module:
    path = referee.kernel.path
    try:
        return ast.parse(path.read_bytes(), filename=str(path))
    except SyntaxError as error:
        line = error.lineno or 0
        raise Stop("syntax", f"{error.msg} (line {line})" if line else error.msg, file=str(path), line=line) from error
    except ValueError as error:
        raise Stop("syntax", str(error), file=str(path)) from error


def _function(tree: ast.Module, name: str) -> ast.FunctionDef | None:
    return next((node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name), None)


def _check_signature(referee: Referee, entry: ast.FunctionDef) -> None:
    reference = referee.reference
    cases = reference.cases()
    if not cases:
        raise Stop("no-cases", f"reference {reference.name} yields no case")
    call = call_of(reference, cases[0])
    inputs, outputs = list(call.arguments), list(call.outputs)
    arguments = entry.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    optional = (
        set(names[len(names) - len(arguments.kwonlyargs) - len(arguments.defaults) :]) if arguments.defaults else set()
    )
    unknown = [name for name in names if name not in (*inputs, *outputs) and name not in optional]
    taken = [name for name in outputs if name in names]
    missing = [name for name in inputs if name not in names and arguments.kwarg is None]
    if unknown or missing or (taken and len(taken) != len(outputs)) or arguments.posonlyargs:
        wanted = f"{entry.name}({', '.join(inputs + outputs)}) or {entry.name}({', '.join(inputs)})"
        got = f"{entry.name}({', '.join(names)})"
        raise Stop("entry-signature", f"{got}, and {wanted} is asked", file=str(referee.kernel.path), line=entry.lineno)


def check_dependencies(dependencies: tuple[str, ...]) -> None:
    """Raise Stop("missing-dependency") or Stop("card") for what is not installed here."""
    for text in dependencies:
        try:
            wanted = Requirement(text)
        except InvalidRequirement as error:
            raise Stop("card", f"dependency {text!r}: {error}") from error
        try:
            version = importlib.metadata.version(wanted.name)
        except importlib.metadata.PackageNotFoundError:
            raise Stop("missing-dependency", f"{text} is not installed") from None
        if not wanted.specifier.contains(version, prereleases=True):
            raise Stop("missing-dependency", f"{text} is asked, {version} is installed")


def _cautions(tree: ast.Module) -> list[str]:
    """Loads in Triton with a mask and no `other`: the interpreter hides what the GPU then does."""
    lines = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "tl.load"
        and any(keyword.arg == "mask" for keyword in node.keywords)
        and not any(keyword.arg == "other" for keyword in node.keywords)
    ]
    return [*(f"line {line}: {CAUTION}" for line in lines), *_streams(tree)]


def _streams(tree: ast.Module) -> list[str]:
    """Streams other than the caller's: a CUDA graph does not see them, and nobody waits for them."""
    named = [(node.lineno, node.attr) for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    named += [(node.lineno, node.id) for node in ast.walk(tree) if isinstance(node, ast.Name)]
    found = sorted({(line, name) for line, name in named if name in STREAMS})
    return [f"line {line}: {name} is not the caller's stream: torch.cuda.current_stream() is" for line, name in found]
