"""Controls: what every reference must be able to tell apart, found out without a kernel, once per reference.

Wrong outputs (zeros, a constant, the input, the output of the call before, the right answer with a tile missing) must
fail the comparison in at least one case of each dtype, an honest one must pass in all, and each input must matter: with
any one of them changed, the old answer must be wrong in at least one case.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

import kernelci
from kernelci import problems, whole
from kernelci.reference import Case, Reference, ReferenceFailed
from kernelci.workbench import oracle
from kernelci.workbench.drawn import Drawn, draw_inputs, make
from kernelci.workbench.draws import Sketch
from kernelci.workbench.judging import judge
from kernelci.workbench.narrow import decoded
from kernelci.workbench.poison import bits

SEED = "controls"
CASES_PER_DTYPE = 6
MAX_ELEMENTS = 2**18
MAX_FLOPS = 2e8
ONE_SHAPE_TIMES = 1024  # larger, where there is no other case to try
TILE = 128
COPY = "a copy of the input"
Outputs = dict[str, torch.Tensor]
Control = Callable[[Drawn, Drawn], Outputs]


class Weak(Exception):
    """A reference that can't tell right from wrong: the reason and what it accepts."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


def check(reference: Reference, device: str, cache: Path | None = None) -> None:
    """Raise Weak where the reference is too weak; what was found is kept by content. Raises ReferenceFailed."""
    path = cache / f"{key(reference, device)}.json" if cache else None
    found = _kept(path)
    if found is None:
        found = _examined(reference, device)
        if path is not None:
            whole.keep(path, json.dumps(found).encode())
    if found:
        raise Weak(*found)


def key(reference: Reference, device: str) -> str:
    """The content that the answer depends on: the reference, kernelci with its gates and draws, and torch."""
    digest = hashlib.sha256(reference.path.read_bytes())
    for path in sorted([*Path(__file__).parent.glob("*.py"), *Path(problems.__file__).parent.glob("*.py")]):
        digest.update(path.read_bytes())
    if reference.one_shape:  # which may lie in a file of their own
        digest.update(repr([case.values for case in reference.cases()]).encode())
    digest.update(f"{reference.name} {kernelci.__version__} {torch.__version__} {device.partition(':')[0]}".encode())
    return digest.hexdigest()[:32]


def _kept(path: Path | None) -> list[str] | None:
    """An answer that was kept: empty for a good reference. None where there is none that can be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8")) if path else None
    except (OSError, ValueError):
        return None
    return found if isinstance(found, list) and len(found) in (0, 2) else None


def _examined(reference: Reference, device: str) -> list[str]:
    try:
        for group in _by_dtype(reference):
            _check_group(reference, group, device)
        _check_inputs_matter(reference, device)
    except Weak as weak:
        return [weak.reason, weak.message]
    return []


def _by_dtype(reference: Reference) -> Iterable[list[Case]]:
    """Cases that are worth a control, a few for each dtype: neither empty nor large."""
    groups: dict[str, list[Case]] = {}
    for case in reference.cases():
        sizes = [value for _, value in case.values if type(value) is int]
        fits = sum(sizes) <= MAX_ELEMENTS or reference.one_shape
        if case.kind == "check" and 0 not in sizes and fits:
            groups.setdefault(str(dict(case.values).get("dtype", "")), []).append(case)
    return groups.values()


def _check_group(reference: Reference, cases: list[Case], device: str) -> None:
    """Each control, on each output alone, must be refused in one of the cases at least."""
    open_: dict[tuple[str, str], bool] = {}
    tried = 0
    for case in sorted(cases, key=lambda case: -min(_size(reference, case), MAX_ELEMENTS // 16)):
        drawn = make(reference, case, "normal:0", SEED, device)
        if not _worth(reference, drawn):
            continue
        tried += 1
        _check_honest(reference, drawn)
        other = make(reference, case, "normal:1", SEED, device)
        if tried == 1:
            open_ = {(name, output): False for name in CONTROLS for output in drawn.outputs}
        for name, output in [*open_]:
            wrong = CONTROLS[name](drawn, other)[output]
            if name == COPY and torch.equal(bits(wrong), bits(drawn.truth.honest[output])):
                continue  # an operation that copies: the copy is right
            open_[name, output] = True
            if not _passes(reference, drawn, drawn.truth.honest | {output: wrong}):
                open_.pop((name, output))
        if tried >= CASES_PER_DTYPE or not open_:
            break
    accepted = next((key for key, differs in open_.items() if differs), None)
    if accepted:
        raise Weak("weak-reference", f"{accepted[0]} would pass as {accepted[1]} in {_in_all(cases, tried)}")


def _in_all(cases: list[Case], tried: int) -> str:
    dtype = dict(cases[0].values).get("dtype", "")
    return f"all {tried} cases that were tried" + (f" of {dtype}" if dtype else "")


def _size(reference: Reference, case: Case) -> int:
    inputs = reference.inputs(case, Sketch())
    return sum(spec.elements for spec in reference.outputs(case, inputs).values())


def _worth(reference: Reference, drawn: Drawn) -> bool:
    elements = sum(spec.elements for spec in drawn.outputs.values())
    flops = reference.cost(drawn.case, drawn.inputs, drawn.outputs).flops
    times = ONE_SHAPE_TIMES if reference.one_shape else 1
    return 0 < elements <= MAX_ELEMENTS * times and flops <= MAX_FLOPS * times


def _passes(reference: Reference, drawn: Drawn, outputs: Outputs) -> bool:
    return all(comparison.passed for comparison in judge(reference, drawn, outputs))


def _check_honest(reference: Reference, drawn: Drawn) -> None:
    found = judge(reference, drawn, drawn.truth.honest)
    wrong = next((comparison for comparison in found if comparison.steady and not comparison.passed), None)
    if wrong is not None:
        why = wrong.said or "the gates"
        raise Weak("strict-reference", f"the honest {wrong.name} of case {drawn.case.id} is refused by {why}")


def _each(drawn: Drawn, make_one: Callable[[str, torch.Tensor], torch.Tensor]) -> Outputs:
    """An output for each name, from its honest values."""
    return {name: _like(values, make_one(name, values)) for name, values in drawn.truth.honest.items()}


def _like(honest: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    return values if values.dtype == honest.dtype else oracle.rounded(values, honest.dtype)


def _zeros(drawn: Drawn, other: Drawn) -> Outputs:
    return _each(drawn, lambda name, honest: torch.zeros_like(decoded(honest)))


def _constant(drawn: Drawn, other: Drawn) -> Outputs:
    """All elements the mean of the right ones; of a single element, that of the call before."""

    def level(name: str, honest: torch.Tensor) -> torch.Tensor:
        source = drawn if honest.numel() > 1 else other
        return torch.full_like(decoded(honest), _mean(source.truth.oracle[name]))

    return _each(drawn, level)


def _mean(values: torch.Tensor) -> float:
    return float(values.double().nan_to_num(0.0, posinf=0.0, neginf=0.0).mean())


def _previous(drawn: Drawn, other: Drawn) -> Outputs:
    return dict(other.truth.honest)


def _input(drawn: Drawn, other: Drawn) -> Outputs:
    """The first input of floats (or any tensor), repeated or cut to the output's size."""
    tensors = [value for value in drawn.inputs.values() if isinstance(value, torch.Tensor) and value.numel()]
    if not tensors:
        return _zeros(drawn, other)
    source = decoded(tensors[0]).reshape(-1)

    def cut(name: str, honest: torch.Tensor) -> torch.Tensor:
        numbers = decoded(honest)
        copies = -(-numbers.numel() // source.numel())
        return source.repeat(copies)[: numbers.numel()].view(numbers.shape)

    return _each(drawn, cut)


def _tile_missing(drawn: Drawn, other: Drawn) -> Outputs:
    """The last tile holds what the call before left."""

    def without(name: str, honest: torch.Tensor) -> torch.Tensor:
        numbers, stale = decoded(honest).clone(), decoded(other.truth.honest[name])
        if not numbers.dim():
            return stale
        tile = tuple(slice(size - min(TILE, -(-size // 4)), size) for size in numbers.shape[-2:])
        numbers[(..., *tile)] = stale[(..., *tile)]
        return numbers

    return _each(drawn, without)


CONTROLS: Mapping[str, Control] = {
    "zeros": _zeros,
    "a constant": _constant,
    COPY: _input,
    "the answer to the call before": _previous,
    "an answer with one tile missing": _tile_missing,
}


def _check_inputs_matter(reference: Reference, device: str) -> None:
    """With any one input changed, the answer to the old one must be wrong in at least one case."""
    open_ = set(reference.parameters())
    cases = [case for group in _by_dtype(reference) for case in group]
    tried = False
    for case in sorted(cases, key=lambda case: abs(_size(reference, case) - 4096)):
        if not open_:
            return
        drawn = make(reference, case, "normal:0", SEED, device)
        if _worth(reference, drawn):
            tried = True
            open_ -= {name for name in open_ if _matters(reference, drawn, name, device)}
    if open_ and tried:
        raise Weak("idle-input", f"no case has another answer when {sorted(open_)[0]} changes")


def _matters(reference: Reference, drawn: Drawn, name: str, device: str) -> bool:
    """Whether the answer to the case is wrong for the same case with another value of one input."""
    for value in _others(reference, drawn, name, device):
        inputs = drawn.inputs | {name: value}
        try:
            truth = oracle.ask(reference, inputs, drawn.outputs)
        except ReferenceFailed:
            return True
        changed = Drawn(drawn.case, inputs, drawn.outputs, truth)
        if not _passes(reference, changed, drawn.truth.honest):
            return True
    return False


def _others(reference: Reference, drawn: Drawn, name: str, device: str) -> list[Any]:
    """Other values of an input: a tensor's from another seed; left out (0), doubled or negated for a number."""
    value = drawn.inputs[name]
    if isinstance(value, torch.Tensor):
        other: torch.Tensor = draw_inputs(reference, drawn.case, "normal:1", SEED, device)[name]
        return [_changed(value) if torch.equal(bits(value), bits(other)) else other]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [0 * value, 2 * value, value + 1] if value else [1 + value]
    return []


def _changed(value: torch.Tensor) -> torch.Tensor:
    """Another value of an input that is the same in every draw."""
    if value.dtype == torch.bool:
        return ~value
    return value.roll(1, -1) if value.dim() and bool((value != value.reshape(-1)[0]).any()) else value + 1
