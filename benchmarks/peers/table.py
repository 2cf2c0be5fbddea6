"""The peers' comparison as Markdown."""

from collections.abc import Collection, Sequence

from evaluators import Verdict
from express import Kernel
from msgspec import Struct

HEAD = ("evaluator", "kernels", "s", "s a kernel", "honest passed", "others let through")


class Result(Struct):
    """What one evaluator made of the kernels by name, and in how many seconds, its own start included."""

    peer: str
    verdicts: dict[str, Verdict] = {}
    seconds: float = 0.0
    missing: str = ""

    @property
    def each(self) -> float:
        """Seconds a kernel, over those that it reached."""
        return self.seconds / max(1, len(self.verdicts))


def table(kernels: Sequence[Kernel], found: Sequence[Result]) -> str:
    """Throughput and verdicts of each evaluator, then each kernel."""
    honest = {kernel.name for kernel in kernels if kernel.honest}
    lines = [_line(HEAD), _line((":--", *["--:"] * (len(HEAD) - 1)))]
    lines += [_line(_summary(one, kernels, honest)) for one in found]
    there = [one for one in found if not one.missing]
    lines += ["", *_faster(there), ""]
    lines += [_line(("kernel", *[one.peer for one in there])), _line([":--"] * (len(there) + 1))]
    for kernel in kernels:
        name = kernel.name if kernel.honest else f"{kernel.name} (bad)"
        lines.append(_line((name, *[_cell(one.verdicts.get(kernel.name)) for one in there])))
    return "\n".join(lines) + "\n"


def _summary(one: Result, kernels: Sequence[Kernel], honest: Collection[str]) -> tuple[str, ...]:
    if one.missing:
        return (one.peer, one.missing, *[""] * (len(HEAD) - 2))
    reached = one.verdicts.keys()
    passed = {name for name, verdict in one.verdicts.items() if verdict.passed}
    return (
        one.peer,
        f"{len(reached)} of {len(kernels)}",
        f"{one.seconds:.1f}",
        f"{one.each:.2f}",
        f"{len([name for name in passed if name in honest])} of {len([name for name in reached if name in honest])}",
        f"{len([name for name in passed if name not in honest])} of "
        f"{len([name for name in reached if name not in honest])}",
    )


def _faster(found: Sequence[Result]) -> list[str]:
    """kernelci's throughput beside the others'."""
    own = next((one for one in found if one.peer == "kernelci" and one.verdicts), None)
    others = [one for one in found if one is not own and one.verdicts]
    if own is None or not others:
        return []
    told = ", ".join(f"{one.each / own.each:.1f} times that of {one.peer}" for one in others)
    return [f"kernelci's throughput is {told}."]


def _cell(found: Verdict | None) -> str:
    if found is None:
        return "not reached"
    if not found.passed:
        return f"refused: {found.said}"
    return f"passed, {found.ns / 1e3:.2f} µs" if found.ns else "passed"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
