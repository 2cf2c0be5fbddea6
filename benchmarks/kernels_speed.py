"""How fast this repository's kernels are on this GPU, beside the copy bandwidth and cuBLAS measured with them.

    python benchmarks/kernels_speed.py [KERNELS…] [--json FILE] [--timeout SECONDS]
    python benchmarks/kernels_speed.py --dry-run        # needs no GPU: what would be timed

Every kernel has a child process of its own. All children import and compile at the same time; then they time their
bench cases one after the other, so that none measures another's work. Prints a Markdown table. Times are medians of
triton.testing.do_bench, and in microseconds mostly of launches: good for a table, not for a verdict.
"""

import argparse
import datetime
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from kernelci import backends, catalog, config, units  # noqa: E402
from kernelci.catalog import Kernel  # noqa: E402
from kernelci.model import Unit  # noqa: E402

TIMEOUT_S = 60.0
COPY_BYTES = 2**31  # far beyond the L2
WARMUP_MS, REPEAT_MS = 20, 80
# These are bound by arithmetic: their yardstick is torch's own matmul (cuBLAS); all others are bound by memory.
PRODUCTS = ("matmul",)
DEVICE = "cuda"
Row = dict[str, Any]


def main() -> int:
    """Parent or child, as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernels", nargs="*")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument(
        "--timeout", type=float, default=TIMEOUT_S, help="seconds for one kernel to compile, or to be timed"
    )
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    found = catalog.scan(ROOT, config.load(ROOT))
    kernels = found.select(options.kernels)
    if options.child:
        return child(kernels[0], found.references[kernels[0].reference])
    if options.dry_run:
        rows = [row for kernel in kernels for row in sketched(kernel, found.references[kernel.reference])]
        print(table(rows, 0.0))
        return 0
    return measure(kernels, options.timeout, options.json)


# ---- the parent ----


def measure(kernels: tuple[Kernel, ...], timeout_s: float, file: Path | None) -> int:
    """Start all, wait until all are ready, time one after the other; 1 if any kernel gave no times."""
    import torch

    if not torch.cuda.is_available():
        print("torch sees no GPU; --dry-run needs none", file=sys.stderr)
        return 3
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        children = [Child(kernel, Path(folder)) for kernel in kernels]
        deadline = time.monotonic() + timeout_s
        ready = [made for made in children if made.wait(deadline)]
        copy = copy_bytes_per_s()
        for made in ready:
            made.go(time.monotonic() + timeout_s)
        rows = [row for made in children for row in made.close()]
    print(
        f"{torch.cuda.get_device_name()}, {datetime.datetime.now(datetime.UTC):%Y-%m-%d}, torch {torch.__version__}; ",
        end="",
    )
    print(f"copy {units.value(copy, Unit.BYTES_PER_SECOND)}; whole run {time.monotonic() - began:.0f} s.\n")
    print(table(rows, copy))
    if file is not None:
        file.write_text(json.dumps(document(rows, copy), indent=1) + "\n", encoding="utf-8")
    return 1 if any("error" in row for row in rows) else 0


class Child:
    """One kernel's process: says `ready` when everything is compiled, waits for `go`, answers with its rows."""

    SCRIPT = Path(__file__).resolve()

    def __init__(self, kernel: Kernel, folder: Path) -> None:
        self.kernel = kernel
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()
        self._rows: list[Row] = []
        self._process = subprocess.Popen(
            [sys.executable, str(self.SCRIPT), "--child", kernel.name],
            env=environment(kernel, folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )

    def wait(self, deadline: float) -> bool:
        """Whether it says that it is ready before the deadline (of the monotonic clock)."""
        return self._line(deadline) == "ready"

    def go(self, deadline: float) -> None:
        """Let it time its cases, and take the rows."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(b"go\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return
        self._rows = json.loads(self._line(deadline) or "[]")

    def _line(self, deadline: float) -> str:
        """A line of the child's, or nothing where it ends or is late; a late one is killed."""
        stdout = self._process.stdout
        assert stdout is not None
        if not select.select([stdout], [], [], max(deadline - time.monotonic(), 0.0))[0]:
            self._process.kill()
            return ""
        return stdout.readline().decode().strip()

    def close(self) -> list[Row]:
        """The rows; where there are none, one that says why."""
        self._process.kill()
        code = self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        said = last_line(self._errors)
        self._errors.close()
        return self._rows or [{"kernel": self.kernel.name, "error": said or f"ended with {code}, or was late"}]


def last_line(errors: IO[bytes]) -> str:
    """The last line that a child wrote to its standard error."""
    errors.seek(0)
    lines = [line for line in errors.read().decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else ""


def environment(kernel: Kernel, folder: Path) -> dict[str, str]:
    """The DSL's own variables, with a fresh cache and the GPU in sight."""
    own = backends.get(kernel.backend).environment(folder / kernel.name.replace("/", "-"))
    own.pop("CUDA_VISIBLE_DEVICES", None)
    return {**os.environ, **own, "PYTHONDONTWRITEBYTECODE": "1"}


# ---- the child ----


def child(kernel: Kernel, reference: Path) -> int:
    """Compile for every case, say so, wait for `go`, time, answer. What a DSL prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    entry, calls = prepared(kernel, reference)
    for _, make in calls:
        once(entry, make())
    print("ready", file=answers, flush=True)
    if sys.stdin.readline() != "go\n":
        return 1
    rows = [{**row, **times(kernel.reference, entry, make())} for row, make in calls]
    print(json.dumps(rows), file=answers, flush=True)
    return 0


def prepared(kernel: Kernel, path: Path) -> tuple[Any, list[tuple[Row, Callable[[], dict[str, Any]]]]]:
    """The entry, and for each bench case its row and what makes its arguments."""
    from kernelci import reference as references
    from kernelci.compiling import loading

    assert kernel.card is not None
    module, reference = loading.load(kernel.path), references.load(path)
    made = []
    for case in reference.cases():
        if case.kind == "bench":
            made.append((described(kernel, reference, case), lambda case=case: arguments(module, reference, case)))
    return getattr(module, kernel.card.entry), made


def arguments(module: Any, reference: Any, case: Any) -> dict[str, Any]:
    """Inputs of a normal draw, and empty outputs; the kernel is prepared for the case."""
    import torch

    from kernelci.workbench.draws import Draw

    if callable(getattr(module, "prepare", None)):
        module.prepare(case)
    inputs = reference.inputs(case, Draw("normal:0", "speed", DEVICE))
    outputs = reference.outputs(case, inputs)
    empty = {name: torch.empty(s.shape, dtype=getattr(torch, s.dtype), device=DEVICE) for name, s in outputs.items()}
    torch.cuda.empty_cache()
    return {**inputs, **empty}


def once(entry: Callable[..., Any], values: dict[str, Any]) -> None:
    """Call, which compiles; then give the memory to the other children."""
    import torch

    entry(**values)
    torch.cuda.synchronize()
    values.clear()
    torch.cuda.empty_cache()


def times(reference: str, entry: Callable[..., Any], values: dict[str, Any]) -> Row:
    """Median seconds of the kernel, and for a product those of torch's."""
    import torch
    from triton.testing import do_bench

    def median(function: Callable[[], Any]) -> float:
        return float(do_bench(function, warmup=WARMUP_MS, rep=REPEAT_MS, return_mode="median")) * 1e-3

    found: Row = {"seconds": median(lambda: entry(**values))}
    if reference in PRODUCTS:
        a, b, c = values["a"], values["b"], values["c"]
        found["yardstick_seconds"] = median(lambda: torch.matmul(a, b.T, out=c))
    values.clear()
    torch.cuda.empty_cache()
    return found


def copy_bytes_per_s() -> float:
    """Bytes read and written per second by a device-to-device copy of torch's."""
    import torch
    from triton.testing import do_bench

    source = torch.empty(COPY_BYTES, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * COPY_BYTES / (float(do_bench(lambda: target.copy_(source), return_mode="median")) * 1e-3)


# ---- what is printed ----


def sketched(kernel: Kernel, path: Path) -> Iterator[Row]:
    """The rows without times."""
    from kernelci import reference as references

    reference = references.load(path)
    for case in reference.cases():
        if case.kind == "bench":
            yield described(kernel, reference, case)


def described(kernel: Kernel, reference: Any, case: Any) -> Row:
    """What a row says of a case: FLOP, and the bytes that it must read and write at least."""
    from kernelci.workbench.draws import Sketch

    inputs = reference.inputs(case, Sketch())
    cost = reference.cost(case, inputs, reference.outputs(case, inputs))
    return {"kernel": kernel.name, "case": case.id, "title": case.title, "flops": cost.flops, "bytes": cost.bytes}


def rated(row: Row, copy: float) -> tuple[str, str]:
    """The rate, and the share of the yardstick's rate."""
    if row["kernel"].partition("/")[0] in PRODUCTS:
        share = row["yardstick_seconds"] / row["seconds"]
        return units.value(row["flops"] / row["seconds"], Unit.FLOP_PER_SECOND), f"{share:.0%} of cuBLAS"
    rate = row["bytes"] / row["seconds"]
    return units.value(rate, Unit.BYTES_PER_SECOND), f"{rate / copy:.0%} of copy" if copy else ""


def table(rows: list[Row], copy: float) -> str:
    """Markdown: kernel by case."""
    timed = any("seconds" in row for row in rows)
    heads = ("time", "rate", "of yardstick") if timed else ("bytes", "FLOP", "yardstick")
    lines = [f"| kernel | case | {' | '.join(heads)} |", "| :-- | :-- | --: | --: | --: |"]
    for row in rows:
        if "error" in row:
            cells = [row["kernel"], row["error"].replace("|", "\\|"), "", "", ""]
        elif "seconds" in row:
            cells = [row["kernel"], row["case"], units.duration(row["seconds"]), *rated(row, copy)]
        else:
            size = units.value(row["bytes"], Unit.BYTES), units.value(row["flops"], Unit.FLOP)
            yardstick = "cuBLAS" if row["kernel"].partition("/")[0] in PRODUCTS else "copy"
            cells = [row["kernel"], row["case"], *size, yardstick]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def document(rows: list[Row], copy: float) -> Row:
    """What --json writes: SI units."""
    import torch

    from kernelci.workbench.device import versions

    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "gpu": torch.cuda.get_device_name(),
        "versions": versions(),
        "copy_bytes_per_s": copy,
        "rows": rows,
    }


if __name__ == "__main__":
    sys.exit(main())
