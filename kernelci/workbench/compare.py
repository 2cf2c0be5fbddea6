"""The comparison: errors of an output against the float64 oracle, gates relative to an honest implementation.

The gates (docs/correctness.md derives them; k = 4 for the worst element, 1.5 for RMSE):

* each element: |error| <= 4 · max(largest honest error in its group, floor ulps at the oracle's value),
* RMSE <= 1.5 · max(honest RMSE, RMSE floor), which for PSNR is 20·log10(1.5) dB below the honest one,
* 1 - cosine <= 2.25 · max(honest 1 - cosine, the floor's share of it).

A group is an output row, or as many rows as make 32 elements. In low precision the floors are what rounding alone costs
(½ ulp for an element, ulp / √12 for RMSE): the error of a careless accumulator must not hide below them. In full precision
the honest implementation is one of many orders of summation and one of many exps, so its own error says little at the
scale of an ulp: exp2(x · log2 e), which GPUs compute fastest, is off by up to 0.7 |x| ulp, so 60 ulp at the smallest
normal number, and a long sum of equal terms by several. The floors are 16 and 8 ulp there; a lower precision (tf32, fp16)
rounds at 4096 ulp. Below float32's smallest normal number a GPU may flush to zero, so that much is always allowed.
"""

import math

import torch
from msgspec import Struct

from kernelci.model import Metric, Number, Unit, number

WORST_FACTOR = 4.0
RMSE_FACTOR = 1.5
GROUP_ELEMENTS = 32
FLUSHED = 2.0**-126
ELEMENT_FLOOR_ULP = {"full": 16.0, "low": 0.5}
RMSE_FLOOR_ULP = {"full": 8.0, "low": 1 / math.sqrt(12)}


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

    @property
    def passed(self) -> bool:
        """Every gate of the precision holds, and NaN and Inf stand exactly where they should."""
        ratios = (self.worst_ratio, self.rmse_ratio, *((self.cosine_ratio,) if self.precision == "low" else ()))
        return self.misplaced == 0 and all(ratio <= 1.0 for ratio in ratios)

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


def precision_of(dtype: torch.dtype) -> str:
    """ "full" for float32 and wider, "low" for narrower floats, "exact" for everything else."""
    if not dtype.is_floating_point:
        return "exact"
    return "full" if torch.finfo(dtype).bits >= 32 else "low"


def compare(
    name: str,
    actual: torch.Tensor,
    oracle: torch.Tensor,
    honest: torch.Tensor,
    precision: str | None = None,
    nan_allowed: bool = False,
) -> Comparison:
    """Compare one output (any shape) with the oracle (float64, same shape); `honest` is in the output's dtype."""
    precision = precision or precision_of(actual.dtype)
    if precision == "exact" or not actual.dtype.is_floating_point:
        return _exact(name, actual, oracle)
    rounded = oracle.to(actual.dtype)
    misplaced = _misplaced(actual, rounded, nan_allowed)
    finite = torch.isfinite(rounded) & torch.isfinite(actual)
    truth = torch.where(finite, oracle, 0.0)
    error = torch.where(finite, actual.double() - oracle, 0.0).abs()
    honest_error = torch.where(finite, honest.double() - oracle, 0.0).abs()
    ulp = ulp_at(truth, actual.dtype)
    allowed = torch.maximum(_group_max(honest_error), ulp * ELEMENT_FLOOR_ULP[precision])
    bound = WORST_FACTOR * allowed + FLUSHED
    bad = misplaced | (error > bound)
    numbers = _reduce(error, honest_error, truth, ulp, error / bound, finite, misplaced, actual, honest)
    return _judged(name, precision, numbers, bad, torch.finfo(actual.dtype).eps)


def _judged(name: str, precision: str, sums: list[float], bad: torch.Tensor, eps: float) -> Comparison:
    (count, peak, power, misplaced, worst_ratio, ulp2, actual_dot, actual_power, honest_dot, honest_power, *rest) = sums
    count = max(count, 1.0)
    rms = math.sqrt(power / count)
    errors = _errors(rest[:4], count, peak, rms, actual_dot, actual_power, power)
    honest = _errors(rest[4:], count, peak, rms, honest_dot, honest_power, power)
    floor = math.sqrt(ulp2 / count) * RMSE_FLOOR_ULP[precision]
    rmse_bound = RMSE_FACTOR * max(honest.rmse, floor)
    cosine_floor = 0.5 * (floor / rms) ** 2 if rms else 0.0
    cosine_bound = RMSE_FACTOR**2 * max(1 - honest.cosine, cosine_floor, 1e-15)
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
        steady=math.isfinite(honest.rmse) and (rms == 0 or honest.rmse < 0.5 * rms),
    )


def _ratio(value: float, bound: float) -> float:
    if bound > 0:
        return value / bound
    return 0.0 if value == 0 else math.inf


def _reduce(
    error: torch.Tensor,
    honest_error: torch.Tensor,
    truth: torch.Tensor,
    ulp: torch.Tensor,
    ratio: torch.Tensor,
    finite: torch.Tensor,
    misplaced: torch.Tensor,
    actual: torch.Tensor,
    honest: torch.Tensor,
) -> list[float]:
    """All sums and maxima in one trip from the device."""
    if truth.numel() == 0:
        return [0.0] * 18
    got, fair = (torch.where(finite, values.double(), 0.0) for values in (actual, honest))
    scale = torch.maximum(truth.abs(), truth.square().mean().sqrt() * torch.finfo(actual.dtype).eps)
    scale = torch.where(scale > 0, scale, 1.0)
    parts = [
        finite.sum(),
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
    return [float(value) for value in torch.stack([part.double() for part in parts]).tolist()]


def _errors(
    sums: list[float], count: float, peak: float, rms: float, dot: float, power: float, truth_power: float
) -> Errors:
    max_abs, max_rel, total, squares = sums
    mse = squares / count
    psnr = math.inf if mse == 0 else (20 * math.log10(peak / math.sqrt(mse)) if peak > 0 else -math.inf)
    norm = math.sqrt(power) * math.sqrt(truth_power)
    cosine = dot / norm if norm > 0 else (1.0 if mse == 0 else 0.0)
    return Errors(max_abs, max_rel, total / count, mse, psnr, min(cosine, 1.0))


def _misplaced(actual: torch.Tensor, rounded: torch.Tensor, nan_allowed: bool) -> torch.Tensor:
    """Where NaN or an infinity stands on one side only; NaN equals NaN only where the reference says so."""
    same_nan = torch.isnan(actual) & torch.isnan(rounded) if nan_allowed else torch.zeros_like(actual, dtype=torch.bool)
    same_inf = torch.isinf(actual) & (actual == rounded)
    return ~(torch.isfinite(actual) & torch.isfinite(rounded)) & ~same_nan & ~same_inf


def ulp_at(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Distance between neighbouring numbers of `dtype` at |values| (float64), at least its smallest subnormal."""
    info = torch.finfo(dtype)
    _, exponent = torch.frexp(values.abs())
    ulp = torch.ldexp(torch.full_like(values, info.eps), exponent - 1)
    ulp = torch.where(values == 0, 0.0, ulp)  # frexp gives zero the exponent of 0.5
    return ulp.clamp(min=info.smallest_normal * info.eps)


def _group_max(error: torch.Tensor) -> torch.Tensor:
    """The largest error within each element's group, in the shape of `error`."""
    if error.numel() == 0:
        return error
    columns = error.shape[-1] if error.dim() else 1
    size = columns * max(1, math.ceil(GROUP_ELEMENTS / columns))
    flat = error.reshape(-1)
    padded = torch.nn.functional.pad(flat, (0, -flat.numel() % size))
    largest = padded.view(-1, size).amax(dim=1, keepdim=True).expand(-1, size).reshape(-1)
    return largest[: flat.numel()].view(error.shape)


def _exact(name: str, actual: torch.Tensor, oracle: torch.Tensor) -> Comparison:
    """Integers and booleans are right or wrong."""
    bad = actual != oracle.to(actual.dtype)
    count = int(bad.sum())
    share = count / max(actual.numel(), 1)
    difference = (actual.double() - oracle.double()).abs()
    largest = float(difference.amax()) if actual.numel() else 0.0
    mse = float(difference.square().mean()) if actual.numel() else 0.0
    errors = Errors(largest, largest, share, mse, math.inf if not count else 0.0, 1.0 if not count else 0.0)
    none = Errors(0.0, 0.0, 0.0, 0.0, math.inf, 1.0)
    return Comparison(name, "exact", errors, none, math.inf if count else 0.0, 0.0, 0.0, 0, bad, steady=True)


def shown(value: Number) -> str:
    """A number for a message: four significant digits."""
    return value if isinstance(value, str) else f"{value:.4g}"
