"""The comparison: errors of an output against the float64 oracle, gates relative to an honest implementation.

The gates (`workbench.gates` has the numbers, docs/correctness.md derives them):

* each element: |error| <= w · max(largest honest error in its group, floor ulps at the oracle's value),
* RMSE <= r · max(honest RMSE, RMSE floor), which for PSNR is 20·log10(r) dB below the honest one,
* 1 - cosine <= r² · max(honest 1 - cosine, the floor's share of it).

In low precision w is 4 and r 1.5, in full both are 16, and 1 - cosine is no gate.

A group is an output row, or as many rows as make 32 elements.
"""

import itertools
import math
from collections.abc import Callable, Sequence

import torch
from msgspec import Struct

from kernelci.model import Metric, Unit, number
from kernelci.reference import Budget
from kernelci.workbench import edges
from kernelci.workbench.gates import ACCUMULATOR_EPS, MOST_TERMS, TERMS_PER_ULP, Equal, Gates, gates
from kernelci.workbench.narrow import Float, decoded, encoded, facts, is_float

GROUP_ELEMENTS = 32
FLUSHED = 2.0**-126
# Of the largest element of a group: where an answer jumps, as a rounded one does, no more is granted.
MOST_MOVED = 2.0**-11


class Errors(Struct, frozen=True):
    """The errors of one output over its finite elements."""

    max_abs: float
    max_rel: float
    mae: float
    mse: float
    psnr_db: float
    cosine: float

    @property
    def rmse(self) -> float:
        """Root of the mean squared error."""
        return math.sqrt(self.mse)


class Comparison(Struct, frozen=True):
    """What the comparison of one output found. `worst_ratio` is the largest error over its bound: above 1 fails."""

    name: str
    precision: str
    errors: Errors
    honest: Errors
    worst_ratio: float
    rmse_ratio: float
    cosine_ratio: float
    misplaced: int
    bad: torch.Tensor
    steady: bool
    said: str = ""

    @property
    def passed(self) -> bool:
        """Every gate of the precision holds, and NaN and Inf stand exactly where they should."""
        ratios = (self.worst_ratio, self.rmse_ratio, *((self.cosine_ratio,) if self.precision == "low" else ()))
        return self.misplaced == 0 and all(ratio <= 1.0 for ratio in ratios)

    @staticmethod
    def numbers(values: torch.Tensor) -> torch.Tensor:
        """An output's values as numbers, in the oracle's shape."""
        return decoded(values) if is_float(values.dtype) else values

    def metrics(self) -> tuple[Metric, ...]:
        """All seven errors, and how much of each gate's room was used."""
        errors = self.errors
        values: list[tuple[str, float, Unit, str, str]] = [
            ("max_abs", errors.max_abs, Unit.NONE, "max abs error", "largest absolute error"),
            ("max_rel", errors.max_rel, Unit.NONE, "max rel error", "over max(|oracle|, RMS · ε of the dtype)"),
            ("mae", errors.mae, Unit.NONE, "MAE", "mean absolute error"),
            ("mse", errors.mse, Unit.NONE, "MSE", "mean squared error"),
            ("rmse", errors.rmse, Unit.NONE, "RMSE", "root of the mean squared error"),
            ("psnr", errors.psnr_db, Unit.DECIBEL, "PSNR", "20 · log10(largest |oracle| / RMSE)"),
            ("cosine", errors.cosine, Unit.NONE, "cosine", "cosine similarity with the oracle"),
            ("worst_ratio", self.worst_ratio, Unit.RATIO, "worst / bound", "above 1 fails"),
            ("rmse_ratio", self.rmse_ratio, Unit.RATIO, "RMSE / bound", "above 1 fails"),
        ]
        return tuple(
            Metric(f"{tag}:{self.name}", number(value), unit, f"{title} ({self.name})", text)
            for tag, value, unit, title, text in values
        )


class Pending(Struct, frozen=True):
    """A comparison whose figures are still on the device: so many float64, and what makes a Comparison of them."""

    figures: torch.Tensor
    finish: Callable[[list[float]], Comparison]


def settled(pending: Sequence[Pending]) -> list[Comparison]:
    """The comparisons, by one answer from the device for all of them."""
    if not pending:
        return []
    figures = iter(torch.cat([one.figures for one in pending]).tolist())
    return [one.finish(list(itertools.islice(figures, one.figures.numel()))) for one in pending]


def precision_of(dtype: torch.dtype) -> str:
    """ "full" for float32 and wider, "low" for narrower floats, "exact" for everything else."""
    if not is_float(dtype):
        return "exact"
    return "full" if facts(dtype).bits >= 32 else "low"


def compare(
    name: str,
    actual: torch.Tensor,
    oracle: torch.Tensor,
    honest: torch.Tensor,
    precision: str | None = None,
    nan_allowed: bool = False,
    budget: Budget | None = None,
    terms: int = 0,
    moved: torch.Tensor | None = None,
    equal: Equal = "few",
    in_one: int = 0,
) -> Comparison:
    """Compare one output (any shape) with the oracle (float64, same shape); `honest` is in the output's dtype.

    `terms`: how long a sum may be at the most, by the inputs' shapes. `equal`: how many of the inputs' elements are,
    and `in_one` how many terms one accumulator may add up. `moved`: what inputs that are off by an ulp cost the honest
    answer, before it is rounded; that counts as honest too, up to what tf32 would cost.
    """
    begun = comparing(name, actual, oracle, honest, precision, nan_allowed, budget, terms, moved, equal, in_one)
    return settled([begun])[0]


def comparing(
    name: str,
    actual: torch.Tensor,
    oracle: torch.Tensor,
    honest: torch.Tensor,
    precision: str | None = None,
    nan_allowed: bool = False,
    budget: Budget | None = None,
    terms: int = 0,
    moved: torch.Tensor | None = None,
    equal: Equal = "few",
    in_one: int = 0,
) -> Pending:
    """`compare`, begun: nothing here waits for the device."""
    if not is_float(actual.dtype):
        return _exact(name, actual, oracle)
    precision, kind = precision or precision_of(actual.dtype), facts(actual.dtype)
    gate = gates(precision, kind, budget or Budget(), terms, equal, in_one)
    got, fair = decoded(actual), decoded(honest)
    rounded = decoded(encoded(oracle, actual.dtype))
    margin = _margin(oracle, fair, kind, gate.worst, gate.worst_floor)
    doubtful = edges.at_the_edge(oracle, kind, margin)
    misplaced = torch.where(
        doubtful, ~edges.either_side(got, oracle, margin), edges.misplaced(got, rounded, oracle, kind, nan_allowed)
    )
    # Where the oracle is beyond the largest number, a type without infinity has no error to speak of.
    expected = torch.isfinite(rounded) & edges.within(oracle, kind) & ~doubtful
    counted = expected & torch.isfinite(got)
    truth = torch.where(counted, oracle, 0.0)
    error = torch.where(counted, got - oracle, 0.0).abs()
    honest_error = torch.where(counted, fair - oracle, 0.0).abs()
    ulp = ulp_at(truth, actual.dtype)
    lost = honest_error if precision == "full" else torch.zeros_like(error)
    allowed = gate.worst * torch.maximum(_group_max(honest_error), ulp * gate.worst_floor)
    if moved is not None:
        off = torch.where(counted, moved, 0.0).nan_to_num(0.0)
        off = torch.maximum(lost, _grown(off, ulp * min(ACCUMULATOR_EPS / kind.eps, 1.0), terms, gate.one_way))
        lost = torch.maximum(lost, _counting(off, truth, equal))
        allowed = torch.maximum(allowed, gate.lost * torch.maximum(_group_max(lost), _typical(off, truth)))
    bound = allowed + min(FLUSHED, kind.smallest_normal)
    bad = misplaced | (error > bound)
    figures = _reduce(error, honest_error, lost, truth, ulp, error / bound, counted, misplaced, got, fair, kind.eps)
    figures = torch.cat([figures, _steadiness(expected | (torch.isnan(fair) & torch.isinf(rounded)), oracle, fair)])
    return Pending(figures, lambda numbers: _judged(name, precision, numbers, bad, gate))


def _grown(off: torch.Tensor, ulp: torch.Tensor, terms: int, one_way: float) -> torch.Tensor:
    """What the moved answer is off by, and what sums make of it: long ones, and those that round one way. But for an
    `ulp` of it, which is what any rounding at the end costs and no sum before it makes more of."""
    return off * (1 + min(terms, MOST_TERMS) / TERMS_PER_ULP) + one_way * (off - ulp).clamp(min=0.0)


def _typical(off: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """What groups typically lose of their largest element, as an error of each: the median over the groups.

    A row's error may be that of one number (a sum that goes into all elements, or into those of one channel), and the
    honest one's is a single sample of it, small by luck in some rows of many.
    """
    if off.numel() == 0:
        return off
    largest, size = _groups(off), _groups(truth.abs())
    share = torch.where(size > 0, largest / size, math.nan).nanmedian().nan_to_num(0.0, posinf=0.0)
    return _spread(share * size, off)


def _counting(off: torch.Tensor, truth: torch.Tensor, equal: Equal) -> torch.Tensor:
    """What counts as honest of what the moved answer is `off` by: no more than tf32 would cost.

    But all of it where the elements are equal; and if that is more than half of the truth there are no digits to judge
    by, in whatever order of summation: the answer must be finite, and that is all.
    """
    if equal != "all":
        return torch.minimum(off, MOST_MOVED * _group_max(truth.abs()))
    lost = off.square().sum() > 0.25 * truth.square().sum()
    return torch.where(lost, math.inf, off)


def _steadiness(expected: torch.Tensor, oracle: torch.Tensor, fair: torch.Tensor) -> torch.Tensor:
    """Squares of the honest error and of the oracle where it has numbers, whatever the kernel has there; not finite
    where the honest one has NaN for a number beyond the type's largest (of two infinities, for example)."""
    if not oracle.numel():
        return torch.zeros(2, dtype=torch.float64, device=oracle.device)
    return torch.stack([torch.where(expected, values, 0.0).square().sum() for values in (fair - oracle, oracle)])


def decided(name: str, actual: torch.Tensor, said: torch.Tensor | str, precision: str = "own") -> Pending:
    """A comparison that the reference made itself: where elements are wrong, or what is wrong."""
    bad = torch.zeros(actual.shape, dtype=torch.bool, device=actual.device)
    if isinstance(said, torch.Tensor):
        bad = said.bool() if said.shape == actual.shape else bad | said.bool().any()
    return Pending(
        bad.sum().double().reshape(1), lambda figures: _decided(name, actual, said, precision, bad, int(figures[0]))
    )


def _decided(
    name: str, actual: torch.Tensor, said: torch.Tensor | str, precision: str, bad: torch.Tensor, count: int
) -> Comparison:
    wrong, share = count > 0 or bool(isinstance(said, str) and said), count / max(actual.numel(), 1)
    text = said if isinstance(said, str) else (f"{count} elements are no right answer" if count else "")
    errors = Errors(share, share, share, share, -math.inf if wrong else math.inf, 0.0 if wrong else 1.0)
    none = Errors(0.0, 0.0, 0.0, 0.0, math.inf, 1.0)
    return Comparison(name, precision, errors, none, math.inf if wrong else 0.0, 0.0, 0.0, 0, bad, True, text)


def _judged(name: str, precision: str, sums: list[float], bad: torch.Tensor, gate: Gates) -> Comparison:
    (count, peak, power, misplaced, worst_ratio, ulp2, actual_dot, actual_power, honest_dot, honest_power, *rest) = sums
    off, lost, kept = rest.pop(-3), rest.pop(-2), rest.pop()
    count = max(count, 1.0)
    rms = math.sqrt(power / count)
    errors = _errors(rest[:4], count, peak, rms, actual_dot, actual_power, power)
    honest = _errors(rest[4:], count, peak, rms, honest_dot, honest_power, power)
    floor = math.sqrt(ulp2 / count) * gate.rmse_floor
    arithmetic = gate.lost_rmse * math.sqrt(off / count)
    rmse_bound = max(gate.rmse * max(honest.rmse, floor), arithmetic)
    cosine_floor = 0.5 * (floor / rms) ** 2 if rms else 0.0
    cosine_bound = math.inf if gate.shared else gate.rmse**2 * max(1 - honest.cosine, cosine_floor, 1e-15)
    cosine_bound = max(cosine_bound, 0.5 * (arithmetic / rms) ** 2 if rms else 0.0)
    return Comparison(
        name,
        precision,
        errors,
        honest,
        worst_ratio,
        _ratio(errors.rmse, rmse_bound),
        _ratio(max(1 - errors.cosine, 0.0), cosine_bound),
        int(misplaced),
        bad,
        steady=math.isfinite(lost) and (kept == 0 or lost < 0.25 * kept),
    )


def _ratio(value: float, bound: float) -> float:
    if bound > 0:
        return value / bound
    return 0.0 if value == 0 else math.inf


def _reduce(
    error: torch.Tensor,
    honest_error: torch.Tensor,
    lost: torch.Tensor,
    truth: torch.Tensor,
    ulp: torch.Tensor,
    ratio: torch.Tensor,
    counted: torch.Tensor,
    misplaced: torch.Tensor,
    got: torch.Tensor,
    fair: torch.Tensor,
    eps: float,
) -> torch.Tensor:
    """All sums and maxima."""
    if truth.numel() == 0:
        return torch.zeros(19, dtype=torch.float64, device=truth.device)
    got, fair = (torch.where(counted, values, 0.0) for values in (got, fair))
    scale = torch.maximum(truth.abs(), truth.square().mean().sqrt() * eps)
    scale = torch.where(scale > 0, scale, 1.0)
    parts = [
        counted.sum(),
        truth.abs().amax(),
        truth.square().sum(),
        misplaced.sum(),
        ratio.nan_to_num(0.0, posinf=math.inf).amax(),
        ulp.square().sum(),
        (got * truth).sum(),
        got.square().sum(),
        (fair * truth).sum(),
        fair.square().sum(),
    ]
    for values in (error, honest_error):
        parts += [values.amax(), (values / scale).amax(), values.sum(), values.square().sum()]
    parts.append(lost.square().sum())
    return torch.stack([part.double() for part in parts])


def _errors(
    sums: list[float], count: float, peak: float, rms: float, dot: float, power: float, truth_power: float
) -> Errors:
    max_abs, max_rel, total, squares = sums
    mse = squares / count
    norm = math.sqrt(power) * math.sqrt(truth_power)
    cosine = dot / norm if norm > 0 else (1.0 if mse == 0 else 0.0)
    return Errors(max_abs, max_rel, total / count, mse, _psnr(peak, mse), min(cosine, 1.0))


def _psnr(peak: float, mse: float) -> float:
    """20 · log10(peak / √mse) in dB; an honest implementation that overflows has an infinite error, and none left."""
    if mse == 0:
        return math.inf
    return 20 * math.log10(peak / math.sqrt(mse)) if peak > 0 and mse < math.inf else -math.inf


def _margin(oracle: torch.Tensor, fair: torch.Tensor, kind: Float, factor: float, floor: float) -> torch.Tensor:
    """What an element may be off by at the type's largest number."""
    error = torch.where(torch.isfinite(fair) & torch.isfinite(oracle), fair - oracle, 0.0).abs()
    last_ulp = kind.max * kind.eps / 2
    return factor * _group_max(error).clamp(min=last_ulp * floor)


def ulp_at(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Distance between neighbouring numbers of `dtype` at |values| (float64), at least its smallest subnormal."""
    info = facts(dtype)
    _, exponent = torch.frexp(values.abs())
    ulp = torch.ldexp(torch.full_like(values, info.eps), exponent - 1)
    ulp = torch.where(values == 0, 0.0, ulp)  # frexp gives zero the exponent of 0.5
    return ulp.clamp(min=info.smallest_normal * info.eps)


def _group_max(error: torch.Tensor) -> torch.Tensor:
    """The largest error within each element's group, in the shape of `error`."""
    if error.numel() == 0:
        return error
    return _spread(_groups(error), error)


def _groups(values: torch.Tensor) -> torch.Tensor:
    """The largest value of each group: shape (groups,)."""
    flat, size = values.reshape(-1), _group_size(values)
    return torch.nn.functional.pad(flat, (0, -flat.numel() % size)).view(-1, size).amax(dim=1)


def _spread(groups: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """What each group has, for each of its elements, in the shape of `like`."""
    size = _group_size(like)
    return groups.unsqueeze(1).expand(-1, size).reshape(-1)[: like.numel()].view(like.shape)


def _group_size(values: torch.Tensor) -> int:
    columns = values.shape[-1] if values.dim() else 1
    return columns * max(1, math.ceil(GROUP_ELEMENTS / columns))


def _exact(name: str, actual: torch.Tensor, oracle: torch.Tensor) -> Pending:
    """Integers and booleans are right or wrong."""
    bad = actual != oracle.to(actual.dtype)
    difference = (actual.double() - oracle.double()).abs() if actual.numel() else bad.new_zeros(1, dtype=torch.float64)
    figures = torch.stack([bad.sum().double(), difference.amax(), difference.square().mean()])
    return Pending(figures, lambda numbers: _equal(name, bad, *numbers))


def _equal(name: str, bad: torch.Tensor, count: float, largest: float, mse: float) -> Comparison:
    share = count / max(bad.numel(), 1)
    errors = Errors(largest, largest, share, mse, math.inf if not count else 0.0, 1.0 if not count else 0.0)
    none = Errors(0.0, 0.0, 0.0, 0.0, math.inf, 1.0)
    return Comparison(name, "exact", errors, none, math.inf if count else 0.0, 0.0, 0.0, 0, bad, steady=True)
