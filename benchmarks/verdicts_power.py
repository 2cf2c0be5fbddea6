"""How often verdicts on times are wrong, and what they find: `python benchmarks/verdicts_power.py BLOCKS.json`.

With --write the tables go into docs/measurements.md. BLOCKS.json holds recorded blocks, times in ns:
{"rows": [{"row": name, "aa": [[base, base], …], "slower": {"0.01": [[base, head], …], …}}], "where": "NVIDIA H200"}.
From these whole pull requests of 60 rows are drawn, block by block with replacement, and judged as a run judges them:
planned looks, q-values over all rows, floors, and a second contest of what differs. In the first series of pull
requests nothing is slower; in one more for each recorded slowdown one row in ten is.
"""

import argparse
import datetime
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kernelci import stats

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "measurements.md"
BEGIN, END = "<!-- verdicts_power -->", "<!-- end of verdicts_power -->"
ROWS, FLOOR = 60, 0.005
CONTROL = stats.LOOKS.deciding  # blocks of the A/A series: it runs up to the first look that decides
Array = NDArray[np.float64]
Pair = tuple[float, float]


class Recorded(Struct, frozen=True):
    """One row's blocks: [base, head] in ns, of base against base and of each slowdown."""

    row: str
    aa: tuple[Pair, ...]
    slower: dict[str, tuple[Pair, ...]]


class Recording(Struct, frozen=True):
    """The file."""

    rows: tuple[Recorded, ...]
    where: str = ""


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
    """Of the others: SAME; what is left is UNKNOWN."""
    blocks: float


class Spread(Struct, frozen=True):
    """A row's noise: of one block, and the effects of base against base that 95 % lie within."""

    row: str
    block: float
    effects: float


def ratios(pairs: tuple[Pair, ...]) -> Array:
    """ln(head / base) of each block."""
    return np.asarray(stats.paired([base for base, _ in pairs], [head for _, head in pairs]))


def experiment(recording: Recording, slowdown: float, prs: int, seed: int, rows: int = ROWS) -> Power:
    """Resample so many pull requests in which one row in ten is slower by `slowdown` (0: none)."""
    draw = np.random.default_rng(seed)
    which = draw.integers(0, len(recording.rows), (prs, rows))
    moved = np.zeros((prs, rows), dtype=bool)
    moved[:, : rows // 10] = slowdown > 0
    series, control = _drawn(recording, slowdown, which, moved, draw)
    said, blocks = judged(series, control)
    again, _ = _drawn(recording, slowdown, which, moved, draw)
    blocks = blocks + np.where(np.abs(said) == 1, stats.AGAIN, 0)
    said = confirmed(said, again[..., : stats.AGAIN], control)
    quiet = ~moved
    wrong = ((said != 0) & (said != 2) & quiet) | ((said == -1) & moved)
    found, same = (float((said[moved] == word).mean()) if slowdown else 0.0 for word in (1, 2))
    calm = float((said[quiet] == 2).mean())
    return Power(slowdown, prs, int(wrong.any(axis=1).sum()), found, same, calm, float(blocks.mean()))


def _drawn(recording: Recording, slowdown: float, which: Any, moved: Any, draw: Any) -> tuple[Array, Array]:
    """Log-ratios [prs, rows, blocks] of the comparison, and [prs, rows, CONTROL] of the A/A series beside it."""
    series = np.empty((*which.shape, stats.LOOKS.budget))
    control = np.empty((*which.shape, CONTROL))
    for index, row in enumerate(recording.rows):
        pools = [(moved, ratios(row.slower[f"{slowdown:g}"]))] if slowdown else []
        aa = ratios(row.aa)
        for mask, pool in ((~moved, aa), *pools):
            here = (which == index) & mask
            series[here] = draw.choice(pool, (int(here.sum()), series.shape[-1]))
        here = which == index
        control[here] = draw.choice(aa, (int(here.sum()), CONTROL))
    return series, control


def judged(series: Array, control: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Verdicts (1 SLOWER, -1 FASTER, 2 SAME, 0 UNKNOWN) and blocks used, of [prs, rows, blocks] log-ratios.

    As `stats.decide` at each of `stats.LOOKS`, for all rows at once; a row that was decided is measured no further.
    """
    said, used = np.zeros(series.shape[:2], dtype=np.int64), np.full(series.shape[:2], stats.LOOKS.budget)
    p = np.ones(series.shape[:2])
    for blocks in stats.LOOKS.at:
        beside = control[..., :blocks]
        effect, low, high, now = stats.effects(series[..., :blocks], aa=beside)
        still = said == 0
        p = np.where(still, now, p)
        limit = stats.LOOKS.limit(blocks)
        floor = np.hypot(FLOOR, stats.noise_floors(beside, blocks, series[..., :blocks]))
        apart = ((low > 0) | (high < 0)) & (np.abs(effect) > floor) & (q_values(p) <= limit) & (limit > 0)
        same = (low >= -FLOOR) & (high <= FLOOR)
        now_said = np.where(apart, np.sign(effect).astype(np.int64), np.where(same, 2, 0))
        used = np.where(still & (now_said != 0), blocks, used)
        said = np.where(still, now_said, said)
    return said, used


def confirmed(said: NDArray[np.int64], again: Array, control: Array) -> NDArray[np.int64]:
    """What stays of these verdicts after a second contest of what is SLOWER or FASTER; as `stats.shows`."""
    effect, low, high, _ = stats.effects(again, aa=control)
    slower, faster = (low > 0) & (effect > FLOOR), (high < 0) & (effect < -FLOOR)
    found: NDArray[np.int64] = np.where(((said == 1) & ~slower) | ((said == -1) & ~faster), 0, said)
    return found


def q_values(p: Array) -> Array:
    """Benjamini and Hochberg's q of each row of [prs, rows]; as `stats.benjamini_hochberg`, for all at once."""
    count = p.shape[1]
    order = np.argsort(p, axis=1)
    ranked = np.take_along_axis(p, order, 1) * count / np.arange(1, count + 1)
    ranked = np.minimum.accumulate(ranked[:, ::-1], axis=1)[:, ::-1]
    found: Array = np.empty_like(p)
    np.put_along_axis(found, order, np.minimum(ranked, 1.0), 1)
    return found


def spreads(recording: Recording, seed: int, blocks: int = 12, times: int = 4000) -> list[Spread]:
    """Each row's noise, the effects resampled from its A/A blocks."""
    draw = np.random.default_rng(seed)
    found = []
    for row in recording.rows:
        aa = ratios(row.aa)
        effects = stats.effects(draw.choice(aa, (times, blocks)))[0]
        found.append(Spread(row.row, float(aa.std(ddof=1)), float(np.quantile(np.abs(effects), 0.95))))
    return found


def slowdowns(recording: Recording) -> list[float]:
    """Those that every row has."""
    every = [set(row.slower) for row in recording.rows]
    return sorted(float(each) for each in set.intersection(*every))


def tables(powers: list[Power], noise_of: list[Spread]) -> str:
    """Both tables in Markdown."""
    lines = [
        "| 1 row in 10 slower by | PRs | with a wrong SLOWER or FASTER | found | called SAME | others SAME | blocks |",
        "| --: | --: | --: | --: | --: | --: | --: |",
    ]
    for each in powers:
        seen = (f"{each.slower:.2%}", f"{each.same:.2%}") if each.slowdown else ("", "")
        cells = (f"{each.slowdown:.0%}", f"{each.prs:,}", f"{each.wrong_prs:,}", *seen, f"{each.quiet:.1%}")
        lines.append(f"| {' | '.join(cells)} | {each.blocks:.1f} |")
    lines += ["", "| row | one block (sd) | 95 % of A/A effects of 12 blocks |", "| :-- | --: | --: |"]
    lines += [f"| {each.row} | {each.block:.2%} | {each.effects:.2%} |" for each in noise_of]
    return "\n".join(lines)


def text(recording: Recording, found: str, name: str) -> str:
    """The section of docs/measurements.md."""
    blocks = min(len(row.aa) for row in recording.rows)
    return (
        f"{BEGIN}\n## How sure the verdicts are\n\n{datetime.date.today()}, {recording.where or 'recorded blocks'}, "
        f"`python benchmarks/verdicts_power.py {name} --write`: pull requests of {ROWS} rows resampled from "
        f"{len(recording.rows)} recorded rows\n(at least {blocks} A/A blocks each), judged at "
        f"{', '.join(map(str, stats.LOOKS.at))} blocks, practical floor {FLOOR:.1%}, A/A series of {CONTROL} blocks, "
        f"a second contest of {stats.AGAIN} blocks for what is SLOWER or FASTER.\n\n{found}\n{END}\n"
    )


def written(page: str, section: str) -> str:
    """The page with the section in its place, or at its end."""
    if BEGIN in page:
        return re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}\n?", lambda _: section, page, flags=re.DOTALL)
    return f"{page.rstrip()}\n\n{section}"


def good(powers: list[Power]) -> bool:
    """The goal: at most 1 PR in 1,000 wrong; 2 % found in 99 %, 1 % in 90 %."""
    least = {0.01: 0.90, 0.02: 0.99}
    wrong = sum(each.wrong_prs for each in powers) / sum(each.prs for each in powers)
    return wrong <= 0.001 and all(each.slower >= least.get(each.slowdown, 0.0) for each in powers)


def main() -> None:
    """Resample, print the tables; exit code 1 where the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recording", type=Path)
    parser.add_argument("--prs", type=int, default=2000, help="pull requests for each slowdown")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/measurements.md")
    options = parser.parse_args()
    recording = msgspec.convert(json.loads(options.recording.read_text(encoding="utf-8")), Recording)
    sizes = [0.0, *slowdowns(recording)]
    powers = [experiment(recording, each, options.prs, options.seed + index) for index, each in enumerate(sizes)]
    found = tables(powers, spreads(recording, options.seed))
    print(found)
    if options.write:
        section = text(recording, found, str(options.recording))
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), section), encoding="utf-8")
    raise SystemExit(0 if good(powers) else 1)


if __name__ == "__main__":
    main()
