"""How often verdicts on times are wrong, and what they find: `python benchmarks/verdicts_power.py BLOCKS.json`.

With --write the tables go into docs/measurements.md. BLOCKS.json is what benchmarks/record_blocks.py records. From its
blocks whole pull requests of 60 rows are drawn, block by block with replacement, and judged as a run judges them: by
both clocks and in cycles, at planned looks, by q-values over all rows, floors, and a second contest of what differs.
In the first series of pull requests nothing is slower; in one more for each recorded slowdown one row in ten is. All of
that is then repeated with other seeds.
"""

import argparse
import datetime
import sys
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent))

import blocks_file
import sections
from blocks_file import Recorded, Recording
from spreads import CONTROL, CYCLES, EVENTS, NARROW, WALL, Spread, channels, following, spreads, steadied

from kernelci import stats
from kernelci.workbench.clock import AGREE
from kernelci.workbench.figures import CONFIRMED

ROWS, FLOOR = 60, 0.005
SLOWER, FASTER, SAME, UNKNOWN, INVALID = 1, -1, 2, 0, 3
# The goals: wrong pull requests, effects of base against base, and what is found of each slowdown; s of GPU a row.
MOST_WRONG, MOST_SECONDS = 0.001, 4.0
FOUND = {0.01: 0.90, 0.02: 0.99}
REPETITIONS = 3
COLUMNS = (
    "row",
    "windows a side",
    "one block (sd)",
    "by the mean",
    "in cycles",
    "without the clock's",
    "by the wall clock",
    "between processes",
    "95 % of A/A effects of 12 blocks",
    "clocks apart",
    "do_bench apart, at most",
)
Array = NDArray[np.float64]


class Power(Struct, frozen=True):
    """What became of so many pull requests: shares of them and of rows, and the blocks that a row took on average."""

    slowdown: float
    prs: int
    wrong_prs: int
    """With a SLOWER or FASTER on a row that is not slower, or a FASTER on one that is."""
    slower: float
    """Of the rows that are slower: found."""
    same: float
    """Of the rows that are slower: called SAME."""
    quiet: float
    """Of the others: SAME."""
    invalid: float
    """Of all: the clocks disagree though nobody lied. What is left is UNKNOWN."""
    blocks: float
    seconds: float
    """Of GPU a row: what windows, draws, checks and starts of those blocks took when they were recorded; 0: unknown."""


def experiment(recording: Recording, slowdown: float, prs: int, seed: int, rows: int = ROWS) -> Power:
    """Resample so many pull requests in which one row in ten is slower by `slowdown` (0: none)."""
    draw = np.random.default_rng(seed)
    which = draw.integers(0, len(recording.rows), (prs, rows))
    moved = np.zeros((prs, rows), dtype=bool)
    moved[:, : rows // 10] = slowdown > 0
    control = _drawn(recording, 0.0, which, moved, CONTROL, draw)
    said, blocks, slope = judged(_drawn(recording, slowdown, which, moved, stats.LOOKS.budget, draw), control)
    again = np.where((np.abs(said) == 1) | (said == INVALID), stats.AGAIN, 0)
    said = confirmed(said, _drawn(recording, slowdown, which, moved, stats.AGAIN, draw), control, slope)
    quiet = ~moved
    wrong = ((np.abs(said) == 1) & quiet) | ((said == FASTER) & moved)
    found, same = (float((said[moved] == word).mean()) if slowdown else 0.0 for word in (SLOWER, SAME))
    seconds = np.asarray([_seconds(row) for row in recording.rows])[which]
    took = seconds[..., 0] * (blocks + again) + seconds[..., 1] * np.minimum(blocks, CONTROL)
    return Power(
        slowdown,
        prs,
        int(wrong.any(axis=1).sum()),
        found,
        same,
        float((said[quiet] == SAME).mean()),
        float((said == INVALID).mean()),
        float((blocks + again).mean()),
        float(took.mean()),
    )


def _drawn(recording: Recording, slowdown: float, which: Any, moved: Any, blocks: int, draw: Any) -> Array:
    """[prs, rows, blocks, channel]: so many blocks of each row, of its slowdown where it is moved."""
    series = np.empty((*which.shape, blocks, 4))
    for index, row in enumerate(recording.rows):
        for mask, name in ((~moved, "0"), (moved, f"{slowdown:g}")):
            here = (which == index) & mask
            if here.any():
                pool = channels(row, name)
                series[here] = pool[draw.integers(0, len(pool), (int(here.sum()), blocks))]
    return series


def _seconds(row: Recorded) -> tuple[float, float]:
    """What a block takes: of base and head, A B B A so often as the row has rounds and one more window a side for the
    time end to end; and what a process of base against base adds."""
    known = row.seconds
    window = sum(known.get(name, 0.0) for name in ("window", "drawing", "checking"))
    start = known.get("starting", 0.0)
    return 2 * ((2 * row.rounds + 1) * window + start), 2 * row.rounds * window + start


def judged(series: Array, control: Array) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    """Verdicts, blocks used, and how times followed the clock then, of log-ratios [prs, rows, blocks, channel].

    As `figures.Duel` and `stats.decide` at each of `stats.LOOKS`, for all rows at once; a row that was decided is
    measured no further. INVALID: the clocks disagree at the last look.
    """
    said, used = np.zeros(series.shape[:2], dtype=np.int64), np.full(series.shape[:2], stats.LOOKS.budget)
    p, follows = np.ones(series.shape[:2]), np.zeros(series.shape[:2])
    for blocks in stats.LOOKS.at:
        raw, before = series[..., :blocks, :], control[..., :blocks, :]
        slope = following(raw, before)
        now, aa = steadied(raw, slope), steadied(before, slope)
        effect, low, high, by_events = stats.effects(now[..., EVENTS], aa=aa[..., EVENTS])
        by_wall, agree = _by_wall(effect, now[..., WALL], aa[..., WALL])
        still = said == UNKNOWN
        p = np.where(still, np.maximum(by_events, by_wall), p)
        limit = stats.LOOKS.limit(blocks)
        floor = np.hypot(FLOOR, stats.noise_floors(aa[..., EVENTS], blocks, now[..., EVENTS]))
        plain = stats.effects(raw[..., EVENTS], aa=before[..., EVENTS])
        apart = ((low > 0) | (high < 0)) & (np.abs(effect) > floor) & (q_values(p) <= limit) & (limit > 0)
        same = (low >= -FLOOR) & (high <= FLOOR) & ~apart & ~((slope < 0) & _differs(plain))
        apart = apart & ((slope == 0) | _reaches(plain, effect))
        verdict = np.where(effect > 0, SLOWER, FASTER)
        in_windows = stats.in_windows(raw[..., CYCLES], raw[..., EVENTS])
        apart_too = apart & (~in_windows | _shown(stats.effects(raw[..., CYCLES]), verdict))
        here = np.where(apart_too, verdict, np.where(same, SAME, UNKNOWN)) * agree
        used = np.where(still & (here != UNKNOWN), blocks, used)
        follows = np.where(still, slope, follows)
        said = np.where(still, here, said)
    return np.where((said == UNKNOWN) & ~agree, INVALID, said), used, follows


def _differs(plain: tuple[Array, Array, Array, Array]) -> Any:
    """What times as they were show to differ."""
    effect, low, high, _ = plain
    return ((low > 0) | (high < 0)) & (np.abs(effect) > FLOOR)


def _reaches(plain: tuple[Array, Array, Array, Array], effect: Array) -> Any:
    """Whether times as they were point the same way, and may differ by as much."""
    return (plain[0] * effect > 0) & (plain[1] - FLOOR <= effect) & (effect <= plain[2] + FLOOR)


def _by_wall(effect: Array, wall: Array, aa: Array) -> tuple[Array, Any]:
    """The p that the referee's clock adds (0 where it shows the effect too), and whether it agrees."""
    found, low, high, p = stats.effects(wall, aa=aa)
    shows = (p <= CONFIRMED) & (found * effect > 0)
    return np.where(shows, 0.0, p), (low - AGREE <= effect) & (effect <= high + AGREE)


def _shown(found: tuple[Array, Array, Array, Array], verdict: NDArray[np.int64]) -> Any:
    """Whether another measurement bears a verdict out, as `stats.shows`; yes where it is not known (nan)."""
    effect, low, high, _ = found
    shows = np.where(verdict == SLOWER, (low > 0) & (effect > FLOOR), (high < 0) & (effect < -FLOOR))
    return shows | np.isnan(effect)


def confirmed(said: NDArray[np.int64], again: Array, control: Array, slope: Array) -> NDArray[np.int64]:
    """What stays of these verdicts after a second contest of what is SLOWER, FASTER (as `stats.shows`) or INVALID."""
    now, aa = steadied(again, slope), steadied(control, slope)
    found = stats.effects(now[..., EVENTS], aa=aa[..., EVENTS])
    _, agree = _by_wall(found[0], now[..., WALL], aa[..., WALL])
    chance = (np.abs(said) == 1) & ~_shown(found, said) | (said == INVALID) & agree
    kept: NDArray[np.int64] = np.where(chance, UNKNOWN, said)
    return kept


def q_values(p: Array) -> Array:
    """Benjamini and Hochberg's q of each row of [prs, rows]; as `stats.benjamini_hochberg`, for all at once."""
    count = p.shape[1]
    order = np.argsort(p, axis=1)
    ranked = np.take_along_axis(p, order, 1) * count / np.arange(1, count + 1)
    ranked = np.minimum.accumulate(ranked[:, ::-1], axis=1)[:, ::-1]
    found: Array = np.empty_like(p)
    np.put_along_axis(found, order, np.minimum(ranked, 1.0), 1)
    return found


def slowdowns(recording: Recording) -> list[float]:
    """Those that every row has."""
    every = [set(row.slower) for row in recording.rows]
    return sorted(float(each) for each in set.intersection(*every))


def tables(powers: list[Power], noise_of: list[Spread]) -> str:
    """Both tables in Markdown."""
    lines = [
        "| 1 row in 10 slower by | PRs | with a wrong SLOWER or FASTER | found | called SAME | others SAME | INVALID "
        "| blocks | GPU s a row |",
        "| --: | --: | --: | --: | --: | --: | --: | --: | --: |",
    ]
    for each in powers:
        seen = (f"{each.slower:.2%}", f"{each.same:.2%}") if each.slowdown else ("", "")
        cells = [f"{each.slowdown:.0%}", f"{each.prs:,}", f"{each.wrong_prs:,}", *seen, f"{each.quiet:.1%}"]
        cells += [f"{each.invalid:.2%}", f"{each.blocks:.1f}", f"{each.seconds:.1f}" if each.seconds else ""]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", f"| {' | '.join(COLUMNS)} |", f"| :-- |{' --: |' * (len(COLUMNS) - 1)}"]
    for one in noise_of:
        some = (
            one.block,
            one.middle,
            one.cycles,
            one.steady,
            one.wall,
            one.processes,
            one.effects,
            one.apart,
            one.do_bench,
        )
        lines.append(f"| {one.row} | {one.windows} | {' | '.join(_percent(each) for each in some)} |")
    return "\n".join(lines)


def _percent(value: float) -> str:
    """Nothing for what was not recorded."""
    return f"{value:.2%}" if value > 0 else ""


def goals(powers: list[Power], noise_of: list[Spread]) -> list[tuple[str, str, bool]]:
    """What was asked for, what was found, and whether that is enough."""
    prs = sum(each.prs for each in powers)
    wrong = sum(each.wrong_prs for each in powers)
    narrow = sum(each.narrow for each in noise_of) / len(noise_of)
    rows = [
        (f"wrong pull requests, at most {MOST_WRONG:.1%}", f"{wrong:,} of {prs:,}", wrong <= MOST_WRONG * prs),
        (f"A/A effects within {NARROW:.1%}, 95 %", f"{narrow:.1%}", narrow >= 0.95),
    ]
    for each in powers:
        if each.slowdown in FOUND:
            least = FOUND[each.slowdown]
            rows.append((f"{each.slowdown:.0%} found, {least:.0%}", f"{each.slower:.1%}", each.slower >= least))
    seconds = powers[0].seconds
    if seconds:
        rows.append((f"GPU seconds a row, at most {MOST_SECONDS:g}", f"{seconds:.1f}", seconds <= MOST_SECONDS))
    return rows


def summary(found: list[tuple[str, str, bool]], repeated: list[list[Power]]) -> str:
    """The goals beside what was found, and the repetitions."""
    lines = ["| goal | found | met |", "| :-- | --: | :-- |"]
    lines += [f"| {goal} | {value} | {'yes' if met else 'no'} |" for goal, value, met in found]
    if repeated:
        sizes = [f"{each.slowdown:.0%} found" for each in repeated[0] if each.slowdown]
        lines += [
            "",
            f"| repetition | PRs | wrong | {' | '.join(sizes)} |",
            "| --: | --: | --: |" + " --: |" * len(sizes),
        ]
    for number, powers in enumerate(repeated, 1):
        prs, wrong = sum(each.prs for each in powers), sum(each.wrong_prs for each in powers)
        shares = " | ".join(f"{each.slower:.2%}" for each in powers if each.slowdown)
        lines.append(f"| {number} | {prs:,} | {wrong:,} | {shares} |")
    return "\n".join(lines)


def text(recording: Recording, found: str, name: str) -> str:
    """The section of docs/measurements.md."""
    blocks = min(len(row.aa) for row in recording.rows)
    when = f"recorded {recording.date}" if recording.date else "recorded blocks"
    took = f" in {recording.seconds:.0f} s" if recording.seconds else ""
    looks = ", ".join(map(str, stats.LOOKS.at))
    return (
        f"## How sure the verdicts are\n\n{datetime.date.today()}, "
        f"`python benchmarks/verdicts_power.py {name} --write`; {when}{took}, {recording.where}.\n"
        f"Pull requests of {ROWS} rows resampled from {len(recording.rows)} recorded rows (at least {blocks} A/A "
        f"blocks each), judged at {looks} blocks\nby both clocks and, where the recording has the SM clock, in cycles; "
        f"practical floor {FLOOR:.1%}, A/A series of {CONTROL} blocks,\na second contest of {stats.AGAIN} blocks for "
        "what is SLOWER, FASTER or INVALID (the clocks disagree though nobody lies). GPU seconds are windows, draws,\n"
        f"checks and starts of those blocks, without setting up, auditing and baselines.\n\n{found}"
    )


def main() -> None:
    """Resample, print the tables; exit code 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recording", type=Path)
    parser.add_argument("--prs", type=int, default=2000, help="pull requests for each slowdown")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS, help="of all of it, with other seeds")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/measurements.md")
    options = parser.parse_args()
    recording = blocks_file.read(options.recording)
    recording = replace(recording, rows=tuple(row for row in recording.rows if len(row.aa) > 1))
    sizes = [0.0, *slowdowns(recording)]

    def once(seed: int) -> list[Power]:
        return [experiment(recording, each, options.prs, seed + index) for index, each in enumerate(sizes)]

    powers, noise_of = once(options.seed), spreads(recording, options.seed)
    reached = goals(powers, noise_of)
    repeated = [once(options.seed + 100 * number) for number in range(1, options.repetitions + 1)]
    found = f"{tables(powers, noise_of)}\n\n{summary(reached, repeated)}"
    print(found)
    if options.write:
        sections.write("verdicts_power", text(recording, found, str(options.recording)))
    raise SystemExit(0 if all(met for _, _, met in reached) else 1)


if __name__ == "__main__":
    main()
