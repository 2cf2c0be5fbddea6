"""How far apart the gates hold honest and careless arithmetic: `python benchmarks/gates_margin.py [--write]`.

Emulates, for softmax, rmsnorm, matmul and a sum over all draws, what a kernel could do: honest variants (another order
of summation, an ulp here and there) must stay below the bounds in every draw, careless ones (fp16 accumulators, partial
sums in bf16, tf32, a truncated exp) must be above them in at least one draw of a case.
"""

import argparse
import datetime
import itertools
import math
import platform
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import sections
import torch
from msgspec import Struct

from kernelci.reference import Case, Reference, load
from kernelci.workbench.drawn import Drawn, make
from kernelci.workbench.draws import names
from kernelci.workbench.judging import judge
from kernelci.workbench.oracle import rounded

ROOT = Path(__file__).resolve().parents[1]
Tensor = torch.Tensor
Sum = Callable[[Tensor], Tensor]
MIN_ELEMENTS, MAX_ELEMENTS, MAX_FLOPS = 64, 2**17, 2e8
LANES = 32


class Arithmetic(Struct, frozen=True):
    """How a kernel computes: sums along the last axis, exp, 1/sqrt, what a product's operands are rounded to."""

    add: Sum
    exp: Callable[[Tensor], Tensor] = torch.exp
    rsqrt: Callable[[Tensor], Tensor] = torch.rsqrt
    operand: Callable[[Tensor], Tensor] = lambda values: values
    product: Callable[[Tensor, Tensor], Tensor] = lambda a, b: a @ b.T


def lanes(accumulator: torch.dtype, width: int = LANES) -> Sum:
    """Add as `width` lanes do, each one after another in `accumulator`, and then the lanes."""

    def add(values: Tensor) -> Tensor:
        total = by_each(values, width, accumulator)
        whole = total[..., 0]
        for lane in range(1, width):
            whole = (whole.float() + total[..., lane].float()).to(accumulator)
        return whole.float()[..., None]

    return add


def one_by_one(values: Tensor) -> Tensor:
    """Add as one thread does, in float32."""
    sums = np.add.accumulate(values.cpu().numpy(), axis=-1)[..., -1:]
    return torch.from_numpy(sums.copy()).to(values.device)


def threads(width: int) -> Sum:
    """Add as `width` threads do, each one after another, and then in a tree."""

    def add(values: Tensor) -> Tensor:
        total = by_each(values, width, torch.float32)
        while total.shape[-1] > 1:
            total = total[..., ::2] + total[..., 1::2]
        return total

    return add


def by_each(values: Tensor, width: int, accumulator: torch.dtype) -> Tensor:
    """What each of `width` lanes has that add every `width`-th element one after another: [..., width]."""
    parts = torch.nn.functional.pad(values, (0, -values.shape[-1] % width)).view(*values.shape[:-1], -1, width)
    total = torch.zeros_like(parts[..., 0, :], dtype=accumulator)
    for step in range(parts.shape[-2]):
        total = (total.float() + parts[..., step, :]).to(accumulator)
    return total


def split(partial: torch.dtype, parts: int) -> Sum:
    """Add in `parts` stretches whose sums are kept in `partial`."""
    return lambda values: sum(chunk.sum(-1, keepdim=True).to(partial).float() for chunk in values.chunk(parts, dim=-1))  # type: ignore[return-value]


def blocks(accumulator: torch.dtype, depth: int) -> Callable[[Tensor, Tensor], Tensor]:
    """A product accumulated block after block along k."""

    def product(a: Tensor, b: Tensor) -> Tensor:
        total = torch.zeros(len(a), len(b), dtype=accumulator, device=a.device)
        for begin in range(0, a.shape[1], depth):
            part = a[:, begin : begin + depth] @ b[:, begin : begin + depth].T
            total = (total.float() + part).to(accumulator)
        return total.float()

    return product


def split_k(partial: torch.dtype, parts: int) -> Callable[[Tensor, Tensor], Tensor]:
    """A product in `parts` stretches along k, each kept in `partial` until they are added."""

    def product(a: Tensor, b: Tensor) -> Tensor:
        pairs = zip(a.chunk(parts, dim=1), b.chunk(parts, dim=1), strict=True)
        return torch.stack([(x @ y.T).to(partial).float() for x, y in pairs]).sum(0)

    return product


def exp2(values: Tensor) -> Tensor:
    """exp as GPUs compute it fastest: exp2 of a rounded product."""
    return torch.exp2(values * math.log2(math.e))


def truncated_exp(values: Tensor) -> Tensor:
    """exp2 of the fraction by a parabola: right to about nine bits."""
    power = values * math.log2(math.e)
    whole = power.floor()
    fraction = power - whole
    return torch.exp2(whole) * (1.0017247 + fraction * (0.65763628 + fraction * 0.33718944))


def quick_rsqrt(values: Tensor) -> Tensor:
    """The famous constant and one step of Newton: right to about nine bits."""
    guess = (0x5F3759DF - (values.contiguous().view(torch.int32) >> 1)).view(torch.float32)
    return guess * (1.5 - 0.5 * values * guess * guess)


def tf32(values: Tensor) -> Tensor:
    """Rounded to ten bits of mantissa, as tensor cores take float32."""
    bits = values.contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


def _plain(values: Tensor) -> Tensor:
    return values.sum(-1, keepdim=True)


HONEST = {
    "other order": Arithmetic(lanes(torch.float32), exp=exp2, product=blocks(torch.float32, 32)),
    "one accumulator": Arithmetic(one_by_one, exp=exp2, product=blocks(torch.float32, 1)),
    "256 threads": Arithmetic(threads(256), product=blocks(torch.float32, 128)),
    "backwards": Arithmetic(lambda values: _plain(values.flip(-1)), product=lambda a, b: a.flip(1) @ b.flip(1).T),
}
CARELESS = {
    "tf32": Arithmetic(_plain, operand=tf32),
    "fp16 accumulator": Arithmetic(lanes(torch.float16), product=blocks(torch.float16, 16)),
    "bf16 split": Arithmetic(split(torch.bfloat16, 2), product=split_k(torch.bfloat16, 2)),
    "truncated exp or 1/sqrt": Arithmetic(_plain, exp=truncated_exp, rsqrt=quick_rsqrt),
}
# What the contract allows or the operation does not have: tf32 holds every bf16 and fp16 number; a product or a sum has
# no exp; two sums of squares in bf16, or a 1/sqrt of nine bits, move a row's scale by less than half an ulp of bf16,
# which rounding the output does too.
EXEMPT = {
    *(("tf32", name, dtype) for name in ("softmax", "rmsnorm", "matmul") for dtype in ("bfloat16", "float16")),
    *(("truncated exp or 1/sqrt", "matmul", dtype) for dtype in ("float32", "float16", "bfloat16")),
    ("truncated exp or 1/sqrt", "repeatable_sum", "float32"),
    *((name, "rmsnorm", "bfloat16") for name in ("bf16 split", "truncated exp or 1/sqrt")),
}


def softmax(how: Arithmetic, x: Tensor) -> dict[str, Tensor]:
    """As a kernel does: float32 inside."""
    powers = how.operand(how.exp(x - x.amax(-1, keepdim=True)))
    return {"y": powers / how.add(powers)}


def rmsnorm(how: Arithmetic, x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> dict[str, Tensor]:
    """As a kernel does: float32 inside."""
    h = x + residual
    square = how.operand(h) ** 2
    scale = how.rsqrt(how.add(square) / h.shape[-1] + eps)
    return {"y": how.operand(h) * scale * weight, "residual_out": h}


def matmul(how: Arithmetic, a: Tensor, b: Tensor) -> dict[str, Tensor]:
    """As a kernel does: float32 inside."""
    return {"c": how.product(how.operand(a), how.operand(b))}


def repeatable_sum(how: Arithmetic, x: Tensor) -> dict[str, Tensor]:
    """As a kernel does: float32 inside."""
    return {"y": how.add(how.operand(x))[..., 0]}


EMULATED: dict[str, Callable[..., dict[str, Tensor]]] = {
    "softmax": softmax,
    "rmsnorm": rmsnorm,
    "matmul": matmul,
    "repeatable_sum": repeatable_sum,
}
FOLDERS = (ROOT / "references", ROOT / "tests" / "bad_kernels" / "references")


def computed(reference: Reference, drawn: Drawn, how: Arithmetic) -> dict[str, Tensor]:
    """The outputs of a kernel with this arithmetic."""
    inputs = {name: value.float() if hasattr(value, "dtype") else value for name, value in drawn.inputs.items()}
    outputs = EMULATED[reference.name](how, **inputs)
    return {name: rounded(value, drawn.truth.honest[name].dtype) for name, value in outputs.items()}


def nudged(oracle: Tensor, dtype: torch.dtype) -> Tensor:
    """The right answer in float32, an ulp further from zero, then rounded to the output's dtype."""
    values = oracle.float()
    step = torch.nextafter(values, torch.full_like(values, math.inf).copysign(values))
    return rounded(torch.where(torch.isfinite(step) & (values != 0), step, values), dtype)


def ratio(reference: Reference, drawn: Drawn, outputs: dict[str, Tensor]) -> float | None:
    """The largest error over its bound, of all outputs and gates; None where the draw does not count."""
    found = judge(reference, drawn, outputs)
    if not all(one.steady for one in found):
        return None
    return max(
        math.inf if one.misplaced else max(one.worst_ratio, one.rmse_ratio, one.cosine_ratio * (one.precision == "low"))
        for one in found
    )


def variants(
    reference: Reference, drawn: Drawn, careless: bool = True
) -> Iterator[tuple[str, bool, dict[str, Tensor]]]:
    """Name, whether it must pass, and the outputs."""
    honest = drawn.truth.honest
    yield "honest", True, honest
    yield "an ulp", True, {name: nudged(drawn.truth.oracle[name], value.dtype) for name, value in honest.items()}
    for name, how in HONEST.items():
        yield name, True, computed(reference, drawn, how)
    for name, how in CARELESS.items() if careless else ():
        dtype = str(next(iter(honest.values())).dtype).removeprefix("torch.")
        if (name, reference.name, dtype) not in EXEMPT:
            yield name, False, computed(reference, drawn, how)


def cases(reference: Reference, dtype: str) -> list[Case]:
    """Check cases of this dtype that are worth it; a matrix product's cases in each dtype."""
    found = []
    for case in reference.cases():
        sizes = [value for _, value in case.values if type(value) is int]
        if case.kind != "check" or 0 in sizes or min(sizes[-1:]) < 16:
            continue
        if reference.name == "matmul":
            case = case.with_dtype(dtype)
        elements = MIN_ELEMENTS <= math.prod(sizes[:2]) <= MAX_ELEMENTS
        if dict(case.values)["dtype"] == dtype and elements and reference.cost(case, {}, {}).flops <= MAX_FLOPS:
            found.append(case)
    return found


class Row(Struct):
    """One line of the table: largest ratio, smallest of the cases' largest, and in how many cases it was caught."""

    reference: str
    dtype: str
    variant: str
    must_pass: bool
    largest: float = 0.0
    weakest: float = math.inf
    caught: int = 0
    cases: int = 0
    weakest_case: str = ""

    @property
    def right(self) -> bool:
        """Honest: below every bound. Careless: above one in at least one draw of one case."""
        return self.largest <= 1 if self.must_pass else self.caught > 0


def measure(
    reference: Reference, dtype: str, chosen: list[Case], seeds: Sequence[str], device: str = "cpu"
) -> list[Row]:
    """All variants over all draws of the cases; a careless one is looked at under the first seed alone."""
    rows: dict[str, Row] = {}
    for case in chosen:
        worst: dict[str, float] = {}
        for seed, draw in itertools.product(seeds, names(3)):
            drawn = make(reference, case, draw, seed, device)
            for name, must_pass, outputs in variants(reference, drawn, careless=seed == seeds[0]):
                found = ratio(reference, drawn, outputs)
                rows.setdefault(name, Row(reference.name, dtype, name, must_pass))
                worst[name] = max(worst.get(name, 0.0), found or 0.0)
        for name, value in worst.items():
            _count(rows[name], case, value)
    return list(rows.values())


def _count(row: Row, case: Case, value: float) -> None:
    row.cases += 1
    row.caught += value > 1
    row.largest = max(row.largest, value)
    if value < row.weakest:
        row.weakest, row.weakest_case = value, case.id


def table(rows: list[Row]) -> str:
    """The table in Markdown."""
    lines = [
        "| reference | dtype | arithmetic | must | largest error / bound | least of a case | caught in |",
        "| :-- | :-- | :-- | :-- | --: | :-- | --: |",
    ]
    for row in rows:
        least = "" if row.must_pass else f"{row.weakest:.3g} ({row.weakest_case})"
        caught = "" if row.must_pass else f"{row.caught} of {row.cases} cases"
        must = "pass" if row.must_pass else "fail"
        wrong = "" if row.right else " **wrong**"
        cells = (row.reference, row.dtype, row.variant, must + wrong, f"{row.largest:.3g}", least, caught)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure all references in their dtypes, print the table; with --write it goes into docs/measurements.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put the table into docs/measurements.md")
    parser.add_argument("--seed", default="margin")
    parser.add_argument("--seeds", type=int, default=1, help="how many runs' seeds the honest ones must pass under")
    parser.add_argument("references", nargs="*", default=list(EMULATED), help="only these")
    options = parser.parse_args()
    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    seeds = [options.seed, *(f"{options.seed}{number}" for number in range(1, options.seeds))]
    rows: list[Row] = []
    for name in options.references:
        reference = load(next(path for path in (folder / f"{name}.py" for folder in FOLDERS) if path.is_file()))
        for dtype in ("float32", "float16", "bfloat16"):
            rows += measure(reference, dtype, cases(reference, dtype), seeds, device)
    print(table(rows))
    if options.write:
        where = torch.cuda.get_device_name() if device != "cpu" else f"CPU ({platform.machine()})"
        head = f"## The gates' margin\n\n{datetime.date.today()}, torch {torch.__version__}, {where}, emulated by "
        head += f"`python benchmarks/gates_margin.py --seeds {options.seeds} --write`; all plain draws.\n\n"
        sections.write("gates_margin", head + table(rows))
    raise SystemExit(0 if all(row.right for row in rows) else 1)


if __name__ == "__main__":
    main()
