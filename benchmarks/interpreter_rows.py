"""What a call in Triton's interpreter takes by its rows: `python benchmarks/interpreter_rows.py [--write]`.

A softmax with one program for each row, on as many elements in many rows as in few. Needs no GPU. Prints a Markdown
table; --write puts it into docs/measurements.md.
"""

import argparse
import datetime
import os
import statistics
import time

os.environ["TRITON_INTERPRET"] = "1"

import sections
import torch
import triton
import triton.language as tl
from ladder_speed import machine

SHAPES = ((16, 1024), (128, 128), (1024, 16), (4096, 4), (4096, 1))
REPEATS = 5


@triton.jit
def softmax_row(x, y, cols, BLOCK: tl.constexpr):  # noqa: N803
    """One program: one row of at most BLOCK columns."""
    col = tl.arange(0, BLOCK)
    at = tl.program_id(0) * cols + col
    values = tl.load(x + at, mask=col < cols, other=float("-inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + at, powers / tl.sum(powers, axis=0), mask=col < cols)


def seconds(rows: int, cols: int) -> float:
    """The median time of a call."""
    x = torch.randn(rows, cols)
    y = torch.empty_like(x)
    taken = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        softmax_row[(rows,)](x, y, cols, triton.next_power_of_2(cols))
        taken.append(time.perf_counter() - began)
    torch.testing.assert_close(y, x.softmax(-1))
    return statistics.median(taken)


def main() -> None:
    """Measure, print, and with --write keep it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="into docs/measurements.md")
    lines = ["| rows | columns | elements | a call | a row |", "| --: | --: | --: | --: | --: |"]
    for rows, cols in SHAPES:
        taken = seconds(rows, cols)
        lines.append(f"| {rows} | {cols} | {rows * cols} | {taken:.3g} s | {taken / rows * 1e3:.2g} ms |")
    lead = (
        f"{datetime.date.today()}, `python benchmarks/interpreter_rows.py`: a softmax with one program for each row, "
        f"medians of {REPEATS} calls. {machine()} The time goes by rows, so the interpreter has a cap of rows too."
    )
    text = f"## The interpreter's time goes by rows\n\n{lead}\n\n" + "\n".join(lines)
    print(text)
    if parser.parse_args().write:
        sections.write("interpreter_rows", text)


if __name__ == "__main__":
    main()
