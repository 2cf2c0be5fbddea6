"""What nightly detection finds in a made-up year, and gets wrong: `python benchmarks/nightly_detection.py`.

365 nights x 200 rows x 3 GPUs. Night to night: sd 0.5 % on half the rows, 1.5 % on the rest; drift (AR 0.9, sd 0.3 %);
2 % outliers of 5 to 20 %; a tenth of the rows has two modes 2 % apart; 3 % of a GPU's nights are dead. Known changes:
steps of 1, 2, 3 and 5 %, creep of 4 % over 120 nights, two new drivers a GPU that move each row by itself, and two
stretches in which a GPU is 3 % slower with its probes. The detector is the one that runs at night (`detect.look`,
`detect.State`, `trend.together`, `trend.steps`); a suspicion is decided by simulated blocks and the real statistics of
pairs (`stats.decide`). With --write the tables go into docs/measurements.md. Thresholds were tuned on seeds 1 and 2.

The year is played three times: with the assumed noise above; with pairs whose blocks are those that an H200 recorded
(recorded/h200_blocks.json: base against base, drawn with replacement, moved by the truth; each row takes one of its
rows); and with nights that vary as means of three of those blocks do instead of by 0.5 and 1.5 %, all else as before.
For the last no goal is set: the blocks are of one session, and how nights differ from each other nobody has recorded.
"""

import argparse
import contextlib
import datetime
import json
import math
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sections
from msgspec import Struct
from numpy.typing import NDArray

from kernelci import stats, trend
from kernelci.history import answered
from kernelci.nightly import detect, remeasure

NIGHTS, ROWS, GPUS, SEED = 365, 200, 3, 2026
SIZES = (0.01, 0.02, 0.03, 0.05)
RECORDED = Path(__file__).with_name("recorded") / "h200_blocks.json"
BLOCK_SD = (0.004, 0.01)  # of a paired block's log-ratio: quiet rows, and the others
ALONE = 3  # blocks of a night's time: BLOCKS_ALONE of kernelci.workbench.duel
SOON = 3
Array = NDArray[np.float64]


class Truth(Struct):
    """A slowing that somebody committed: from the night `at` on, by `size`; creep takes `nights` until it is there."""

    at: int
    size: float
    nights: int = 1
    issue: int | None = None
    """The night that found it."""


class Noise(Struct):
    """What was recorded, for each of some rows: log-ratios of base against base, and how far (a logarithm) the time of
    one block lies off the row's median."""

    pairs: list[Array]
    blocks: list[Array]


def recorded(path: Path = RECORDED) -> Noise:
    """The noise of recorded blocks; the file is what benchmarks/record_blocks.py writes."""
    sides = [np.log(np.array(row["aa"])) for row in json.loads(path.read_text(encoding="utf-8"))["rows"]]
    return Noise([each[:, 1] - each[:, 0] for each in sides], [each[:, 0] - np.median(each[:, 0]) for each in sides])


class Gpu(Struct):
    """A year on one GPU: log times [row, night] (NaN: dead), probes [night], levels that commits set [row, night]."""

    values: Array
    probe: Array
    committed: Array
    truths: list[list[Truth]]
    noisy: NDArray[np.bool_]
    modes: NDArray[np.bool_]
    segments: NDArray[np.int64]


def simulate(
    seed: int, nights: int = NIGHTS, rows: int = ROWS, calm: bool = False, blocks: Sequence[Array] = ()
) -> Gpu:
    """One GPU's year; a calm one has no new driver and no night on which the machine itself is slow.

    `blocks`: nights vary as these do, a list for each row by turns, and not by 0.5 and 1.5 %.
    """
    draw = np.random.default_rng(seed)
    noisy, modes = np.arange(rows) % 2 == 1, draw.random(rows) < 0.1
    values = np.log(draw.uniform(3e3, 2e6, rows))[:, None] + drifted(draw, rows, nights)
    if blocks:
        values += [draw.choice(blocks[row % len(blocks)], (nights, ALONE)).mean(axis=1) for row in range(rows)]
    else:
        values += draw.normal(0, 1, values.shape) * np.where(noisy, 0.015, 0.005)[:, None]
    values += 0.02 * modes[:, None] * (draw.random(values.shape) < 0.5)
    out = draw.random(values.shape) < 0.02
    values[out] += np.log1p(draw.uniform(0.05, 0.2, int(out.sum())))
    drivers = np.sort(draw.choice(np.arange(80, nights - 60), 2, replace=False)) if not calm else np.array([], int)
    segments = np.searchsorted(drivers, np.arange(nights), side="right")
    values += draw.normal(0, 0.02, (len(drivers) + 1, rows))[segments].T
    truths = [known(draw, row, nights, drivers) for row in range(rows)]
    committed = np.array([levels(each, nights) for each in truths])
    probe = drifted(draw, 1, nights)[0] + draw.normal(0, 0.003, nights)
    for begin in draw.choice(np.arange(30, nights - 15), 2) if not calm else ():
        length = int(draw.integers(3, 11))
        values[:, begin : begin + length] += 0.03
        probe[begin : begin + length] += 0.03
    values += committed
    values[:, draw.random(nights) < 0.03] = np.nan
    return Gpu(values, probe, committed, truths, noisy, modes, segments)


def drifted(draw: np.random.Generator, rows: int, nights: int) -> Array:
    """AR(0.9) with a standard deviation of 0.3 %."""
    found, now = np.empty((rows, nights)), draw.normal(0, 0.003, rows)
    for night in range(nights):
        now = 0.9 * now + draw.normal(0, 0.003 * math.sqrt(1 - 0.81), rows)
        found[:, night] = now
    return found


def known(draw: np.random.Generator, row: int, nights: int, drivers: Any) -> list[Truth]:
    """Half the rows have two steps, a twentieth creeps, the rest stays; none within 15 nights of a new driver."""
    if row % 20 == 19:
        return [Truth(int(draw.integers(30, max(nights - 200, 31))), 0.04, 120)]
    if row % 4 > 1:
        return []
    free = [night for night in range(25, nights - 10) if all(not -2 <= night - at < 15 for at in drivers)]
    first = int(draw.choice([night for night in free if night < nights * 0.45]))
    second = int(draw.choice([night for night in free if night > nights * 0.6]))
    return [Truth(at, float(draw.choice(SIZES))) for at in (first, second)]


def levels(truths: Sequence[Truth], nights: int) -> Array:
    """The log level that commits have set, each night."""
    at = np.arange(nights)
    found = [np.clip((at - each.at + 1) / each.nights, 0, 1) * math.log1p(each.size) for each in truths]
    return np.sum(found, axis=0) if found else np.zeros(nights)


def paired(
    draw: np.random.Generator, gpu: Gpu, row: int, size: float, suspected: float, pairs: Sequence[Array] = ()
) -> str:
    """What paired measurements whose sides differ by `size` (a logarithm) say of a suspicion.

    What stays open is measured again, as `remeasure.events` does.
    `pairs`: recorded log-ratios of equal sides, a list for each row by turns, instead of the assumed noise.
    """
    tries = (pair(draw, gpu, row, size, suspected, pairs) for _ in range(remeasure.TRIES))
    return next((said for said in tries if said != "UNKNOWN"), "UNKNOWN")


def pair(
    draw: np.random.Generator, gpu: Gpu, row: int, size: float, suspected: float, pairs: Sequence[Array] = ()
) -> str:
    """What one of them says."""
    count = stats.LOOKS.budget

    def blocks(shift: float) -> list[float]:
        if pairs:
            return [shift + float(value) for value in draw.choice(pairs[row % len(pairs)], count)]
        found = draw.normal(shift, BLOCK_SD[int(gpu.noisy[row])], count)
        if gpu.modes[row]:
            found += 0.02 * (draw.integers(0, 2, count) - draw.integers(0, 2, count))
        return [float(value) for value in found]

    series, control = blocks(size), blocks(0.0)[:12]
    for look in stats.LOOKS.at:
        aa = control[:look]
        effect = stats.effect(series[:look], aa=aa)
        noise = stats.noise_floor(aa, look, series[:look])
        said = stats.decide(effect, effect.p, trend.FLOOR, noise=noise)
        if said != "UNKNOWN":
            return str(said.value)
    return answered("UNKNOWN", effect.high, suspected)


class Tally(Struct):
    """What a year came to."""

    found: dict[float, list[int]]
    """Nights until each step was found, by its size; -1: never."""
    creep: list[int]
    false: int = 0
    doubled: int = 0
    pairs: int = 0
    nights: int = 0
    row_nights: int = 0
    quieted: int = 0
    """GPU nights that were taken for the machine's own."""


def year(gpu: Gpu, seed: int, tally: Tally, pairs: Sequence[Array] = ()) -> None:
    """Every night of one GPU, as the detector lives it."""
    draw = np.random.default_rng(seed)
    kept: list[list[float]] = [[] for _ in gpu.truths]
    states = [detect.State() for _ in gpu.truths]
    looked = [-detect.PATIENCE] * len(kept)
    nights: list[int] = []
    for night in range(gpu.values.shape[1]):
        if np.isnan(gpu.values[0, night]):
            continue
        if nights and gpu.segments[night] != gpu.segments[nights[-1]]:
            kept, states, nights = [[] for _ in kept], [detect.State() for _ in kept], []
        nights.append(night)
        tally.nights += 1
        tally.row_nights += len(kept)
        found = {}
        for row, values in enumerate(kept):
            values.append(float(gpu.values[row, night]))
            one = detect.look(values, states[row], night - looked[row] >= detect.PATIENCE)
            found |= {row: one} if one else {}
        probe = trend.shift([float(gpu.probe[each]) for each in nights], windows=trend.PROBED)
        shifts = [one for one in found.values() if isinstance(one, trend.Shift)]
        moved = trend.together(shifts, len(kept), probe.size if probe else 0.0)
        tally.quieted += bool(moved)
        found = {row: one for row, one in found.items() if detect.beyond(one, moved)}
        # As `detect.tonight`: what became slower first, the clearest first, up to the budget.
        order = sorted(found, key=lambda row: (found[row].size < 0, -getattr(found[row], "score", 0.0)))
        for row in order[: detect.BUDGET]:
            states[row] = decided(draw, gpu, row, found[row], nights, states[row], tally, pairs)
            looked[row] = night


def decided(
    draw: np.random.Generator,
    gpu: Gpu,
    row: int,
    one: trend.Shift | trend.Creep,
    nights: list[int],
    state: detect.State,
    tally: Tally,
    pairs: Sequence[Array] = (),
) -> detect.State:
    """A suspicion, measured in pairs; the tally knows what it was worth."""
    tally.pairs += 1
    good, bad = nights[state.good(one)], nights[-1]
    moved = float(gpu.committed[row, bad] - gpu.committed[row, good])
    verdict = paired(draw, gpu, row, moved, one.size, pairs)
    if verdict == "SLOWER":
        between = [each for each in gpu.truths[row] if good < each.at + each.nights - 1 and each.at <= bad]
        new = [each for each in between if each.issue is None]
        tally.false += not between
        tally.doubled += bool(between) and not new
        for each in new:
            each.issue = bad
    return state.after(len(nights) - 1, one.at, verdict)


def played(
    seed: int,
    rows: int = ROWS,
    nights: int = NIGHTS,
    gpus: int = GPUS,
    pairs: Sequence[Array] = (),
    blocks: Sequence[Array] = (),
) -> Tally:
    """The whole year; with recorded noise in its pairs, and in its nights too."""
    tally = Tally({size: [] for size in SIZES}, [])
    for number in range(gpus):
        gpu = simulate(1000 * seed + number, nights, rows, blocks=blocks)
        year(gpu, 1000 * seed + 500 + number, tally, pairs)
        for each in (each for truths in gpu.truths for each in truths):
            delay = each.issue - each.at if each.issue is not None else -1
            (tally.creep if each.nights > 1 else tally.found[each.size]).append(delay)
    return tally


def table(tally: Tally) -> str:
    """Figures of the year in Markdown."""
    lines = ["| step | in the year | by the 3rd night | 3 nights later | 14 nights later | at all | median delay |"]
    lines += ["| --: | --: | --: | --: | --: | --: | --: |"]
    for size, delays in (*tally.found.items(), ("creep", tally.creep)):
        known = np.array(delays)
        shares = [
            float(np.mean((known >= 0) & (known <= most))) if len(known) else 0.0
            for most in (SOON - 1, SOON, 14, NIGHTS)
        ]
        middle = f"{np.median(known[known >= 0]):.0f}" if (known >= 0).any() else ""
        name = f"{size:.0%}" if isinstance(size, float) else size
        lines.append(f"| {name} | {len(known):,} | {' | '.join(f'{share:.1%}' for share in shares)} | {middle} |")
    issues = tally.false + tally.doubled
    lines += [
        "",
        f"{tally.false} false issues and {tally.doubled} second ones for a change that had one, in "
        f"{tally.row_nights:,} row-nights: {1e4 * issues / max(tally.row_nights, 1):.2f} in 10,000. "
        f"{tally.pairs / max(tally.nights, 1):.1f} suspicions a night and GPU;",
        f"{tally.quieted} of {tally.nights} nights were laid to the machine.",
    ]
    return "\n".join(lines)


Finder = Callable[[Sequence[float]], Sequence[int]]


def finders() -> dict[str, Finder]:
    """What could date a change: ruptures as `trend.steps` uses it, and Apache Otava where it is installed."""
    found: dict[str, Finder] = {
        f"ruptures, penalty {penalty:g}": lambda values, penalty=penalty: [  # type: ignore[misc]
            step.at for step in trend.steps(values, penalty)
        ]
        for penalty in (30.0, 40.0, 50.0)
    }
    with contextlib.suppress(ImportError):
        from otava.analysis import compute_change_points

        def otava(values: Sequence[float], limit: float) -> list[int]:
            # A list: Otava leaves an array's windows uncut and yet counts their beginnings in.
            clean = [math.exp(value) for value in trend._cleaned(np.asarray(values))]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return sorted({int(each.index) for each in compute_change_points(clean, 50, limit, 0.006)[0]})

        for limit in (1e-4, 1e-5, 1e-6):
            found[f"Apache Otava, p {limit:g}"] = lambda values, limit=limit: otava(values, limit)  # type: ignore[misc]
    return found


def dating(seed: int, rows: int = ROWS) -> str:
    """Which finder dates steps better, within one driver: share dated to 5 nights, false dates, time for a series."""
    gpu = simulate(seed, NIGHTS, rows, calm=True)
    alive = np.flatnonzero(~np.isnan(gpu.values[0]))
    lines = ["| dated by | " + " | ".join(f"{size:.0%}" for size in SIZES) + " | false a series | a series |"]
    lines += ["| :-- |" + " --: |" * (len(SIZES) + 2)]
    for name, finder in finders().items():
        began, false, hits = time.process_time(), 0, {size: [] for size in SIZES}  # type: ignore[var-annotated]
        for truths, values in zip(gpu.truths, gpu.values, strict=True):
            if any(each.nights > 1 for each in truths):
                continue
            found = [int(alive[at]) for at in finder([float(value) for value in values[alive]])]
            for each in truths:
                near = min(found, key=lambda at, each=each: abs(at - each.at), default=None)  # type: ignore[misc]
                hit = near is not None and abs(near - each.at) <= 5
                hits[each.size].append(hit)
                found = [at for at in found if not hit or at != near]
            false += len(found)
        took = 1e3 * (time.process_time() - began) / rows
        shares = " | ".join(f"{np.mean(each):.0%}" for each in hits.values())
        lines.append(f"| {name} | {shares} | {false / rows:.2f} | {took:.1f} ms |")
    return "\n".join(lines)


def good(tally: Tally) -> bool:
    """The goal: 3 % found within 3 nights in 95 %; false issues at most 1 in 10,000 row-nights."""
    known = np.array(tally.found[0.03])
    soon = float(np.mean((known >= 0) & (known <= SOON)))
    return soon >= 0.95 and tally.false + tally.doubled <= tally.row_nights / 10_000


def main() -> None:
    """Play the year, print the tables; exit code 1 where the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/measurements.md")
    options = parser.parse_args()
    noise = recorded()
    tally = played(options.seed)
    played_again = [
        ("Pairs with the blocks that an H200 recorded", played(options.seed, pairs=noise.pairs)),
        (
            "Nights, too, that vary as means of three of those blocks do",
            played(options.seed, pairs=noise.pairs, blocks=noise.blocks),
        ),
    ]
    tables = [f"Noise as assumed:\n\n{table(tally)}", *(f"{what}:\n\n{table(each)}" for what, each in played_again)]
    found = "\n\n".join((*tables, f"Dating, with noise as assumed:\n\n{dating(options.seed)}"))
    print(found)
    if options.write:
        head = (
            f"## What nightly detection finds\n\n{datetime.date.today()}, `python benchmarks/nightly_detection.py "
            f"--write`, seed {options.seed}: a made-up year of {NIGHTS} nights, {ROWS} rows and {GPUS} GPUs\n"
            "(what is in it: the script's head). The first night with a change is its 1st; `3 nights later` is the\n"
            "4th, and is what the goal of 95 % is held against; by the 3rd night itself fewer are found.\n"
            "Paired measurements are simulated too: the noise of their blocks (0.4 % and 1 %) is assumed in the\n"
            "first table; in the others it is that of blocks on each of 12 rows that an H200 recorded\n"
            f"(recorded/h200_blocks.json), {min(map(len, noise.pairs))} or more blocks a row.\n"
            "The verdicts are by the statistics that a run uses; what stays open is measured up to four times.\n"
            "Nobody has recorded how nights differ from each other: the third table takes what differs within one\n"
            "session, and no goal is held against it.\n\n"
        )
        sections.write("nightly_detection", head + found)
    raise SystemExit(0 if good(tally) and good(played_again[0][1]) else 1)


if __name__ == "__main__":
    main()
