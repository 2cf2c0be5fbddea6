"""Records blocks of base against itself and against slower ones: `python benchmarks/record_blocks.py OUT.json`.

Needs a GPU. Twelve rows from 2 µs to 2 ms; in each block a fresh process of base and one of head, both the same kernel,
windows A B C D E E D C B A. Head's slower variants do more work, by exactly that share: a hundredth of the slots is
called twice for 0.01. A window of few calls has more than that, and its time is scaled to the share. The file is what
benchmarks/verdicts_power.py reads; `wall` holds the same by the referee's clock. Outputs are checked once a block.
"""

import argparse
import json
import math
import random
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from kernelci import catalog, config
from kernelci.ladder import Plan, opened
from kernelci.referee import KernelReferee
from kernelci.workbench import timing
from kernelci.workbench.arena import Arena
from kernelci.workbench.clock import Overhead, Window, beside
from kernelci.workbench.contest import Course
from kernelci.workbench.protocol import Series
from kernelci.workbench.session import Session

ROOT = Path(__file__).resolve().parents[1]
ROWS = {
    "softmax/triton": ("64x1024-fp16", "8192x256-fp32", "65536x2048-bf16"),
    "rmsnorm/cuda": ("256x8192-bf16-eps1e-05", "4096x4096-bf16-eps1e-05", "65536x8192-bf16-eps1e-05"),
    "matmul/cutedsl": ("128x512x512-bf16", "2048x6144x4096-bf16", "4096x4096x4096-bf16"),
    "matmul/triton": ("128x512x512-bf16", "16x4096x4096-bf16", "8192x9728x8192-bf16"),
}
SLOWER = (0.01, 0.02, 0.05)
VARIANTS = (0.0, *SLOWER)
AT_ONCE = 8
SOME_SLOTS = 64  # that get fresh values before each window but a block's first
Windows = dict[str, list[Window]]
Taken = tuple[Course, int | None, list[Windows]]


def main() -> None:
    """Record, and write what there is when the time is up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--blocks", type=int, default=60)
    parser.add_argument("--budget", type=float, default=1200.0, help="seconds in all")
    arguments = parser.parse_args()
    ends = time.monotonic() + arguments.budget
    options = config.load(ROOT)
    found = catalog.scan(ROOT, options)
    kernels = found.select(tuple(ROWS))
    rows: list[dict[str, Any]] = []
    with opened(found, options, Plan(kernels, ROOT / options.out)) as court:
        for number, kernel in enumerate(kernels):
            referee = KernelReferee(kernel, court, (court.device.target,))
            referee.start_compiling()
            share = (ends - time.monotonic()) / (len(kernels) - number)
            rows += record(referee, arguments.blocks, time.monotonic() + share)
            where = f"{court.device.name}, driver {court.device.driver}"
            arguments.out.write_text(json.dumps({"rows": rows, "where": where}), encoding="utf-8")
            print(kernel.name, {row["row"]: len(row["aa"]) for row in rows if row["row"].startswith(kernel.name)})


def record(referee: KernelReferee, blocks: int, ends: float) -> list[dict[str, Any]]:
    """All rows of a kernel."""
    calibration, reference = referee.calibration(), referee.reference
    cases = [case for case in reference.cases() if case.kind == "bench" and case.id in ROWS[referee.kernel.name]]
    arena, _ = timing.arena_for(referee.device.torch_name, reference, cases, calibration)
    scouted = timing.scout(referee.open, arena, reference, cases, calibration)
    courses, configs = [], []
    for case, one in zip(cases, scouted, strict=True):
        assert isinstance(one, timing.Scouted), one
        courses.append(timing.course(arena, reference, case, one.ns, calibration, secrets.token_hex(8)))
        configs.append(one.config if one.config >= 0 else None)
    found: list[list[Windows]] = [[] for _ in cases]
    probed: list[Window] = []
    while len(found[-1]) < blocks and time.monotonic() < ends:
        count = min(AT_ONCE, blocks - len(found[-1]))
        some_blocks(referee, arena, count, list(zip(courses, configs, found, strict=True)), probed)
    arena.close()
    cost = beside(probed, calibration.overhead)
    return [row(f"{referee.kernel.name} {case.id}", some, cost) for case, some in zip(cases, found, strict=True)]


def some_blocks(referee: KernelReferee, arena: Arena, count: int, rows: list[Taken], probed: list[Window]) -> None:
    """Blocks of every row whose processes start together, while nothing is measured."""
    pairs = [(referee.open(arena), referee.open(arena)) for _ in range(count)]
    probe = referee.probe(arena)
    try:
        for course, config, found in rows:
            course.bank.deal()
            with ThreadPoolExecutor(2 * count) as threads:
                for base, head in pairs:
                    threads.submit(prepare, base, course, config, (0.0,))
                    threads.submit(prepare, head, course, config, VARIANTS)
            for base, head in pairs:
                found.append(windows(base, head, course))
                course.bank.deal()
                probed.append(probe.sample())
                base.forget()
                head.forget()
    finally:
        probe.close()
        for session in (one for pair in pairs for one in pair):
            session.close()


def prepare(session: Session, course: Course, config: int | None, variants: tuple[float, ...]) -> None:
    """Get a side's variants ready."""
    layout = course.bank.layout
    for number, slower in enumerate(variants):
        slots = with_more(course.calls["full"], slower)
        session.prepare(Series(number, layout.call(course.bank.case, config), slots, layout.stride, course.mode))


def windows(base: Session, head: Session, course: Course) -> Windows:
    """Base's windows and those of head's variants, forth and back."""
    count = course.calls["full"]
    steps = [("base", base, 0), *((f"{slower:g}", head, number) for number, slower in enumerate(VARIANTS))]
    if random.random() < 0.5:
        steps.reverse()
    taken: Windows = {}
    for turn, (name, session, number) in enumerate((*steps, *reversed(steps))):
        course.bank.deal(count if not turn else min(count, SOME_SLOTS))
        wall, device = session.go(number)
        if not turn:
            course.bank.check(count)
        scale = 1.0 if name in ("base", "0") else len(with_more(count, float(name))) / count / (1 + float(name))
        taken.setdefault(name, []).append(Window(count, wall / scale, device / scale))
    return taken


def with_more(count: int, slower: float) -> tuple[int, ...]:
    """The slots of a window with a share of them called twice, evenly spread and half a window apart, so that no second
    call finds its inputs in the L2; at least one, and the time is scaled where a window is too short for the share."""
    extra = math.ceil(count * slower - 1e-9)
    step = count / extra if extra else math.inf
    twice = {int(step * number) for number in range(extra)}
    return tuple(
        slot for one in range(count) for slot in ((one, (one + count // 2) % count) if one in twice else (one,))
    )


def row(name: str, blocks: list[Windows], cost: Overhead) -> dict[str, Any]:
    """Pairs of each block by the fastest window, as a run takes it."""

    def pairs(variant: str, clock: Any) -> list[list[float]]:
        both = [one for one in blocks if one.get("base") and one.get(variant)]
        return [[round(min(map(clock, one[side])), 3) for side in ("base", variant)] for one in both]

    made: dict[str, Any] = {"row": name, "calls": blocks[0]["base"][0].calls if blocks else 0}
    for key, clock in (("", cost.device), ("wall", cost.wall)):
        some = {"aa": pairs("0", clock), "slower": {f"{slower:g}": pairs(f"{slower:g}", clock) for slower in SLOWER}}
        made |= {key: some} if key else some
    return made


if __name__ == "__main__":
    main()
