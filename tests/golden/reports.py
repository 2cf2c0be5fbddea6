"""Small reports as real runs leave them; the golden files show how each is read."""

import msgspec

from kernelci.model import (
    Artifact,
    Environment,
    Finding,
    KernelReport,
    LostRow,
    Metric,
    Report,
    Row,
    RungResult,
    Unit,
    Verdict,
)
from kernelci.reasons import Outcome, outcome_of

P = Outcome.PASSED
RUNGS = ("precheck", "compile", "run", "correctness", "dump")
CPU = Environment(
    "Linux x86_64",
    "3.11.7",
    isolation="separate process, no sandbox",
    versions={"numpy": "2.4.6", "torch": "2.13.0+cpu", "triton": "3.9.0"},
)
H200 = Environment(
    "Linux x86_64",
    "3.12.3",
    gpu="NVIDIA H200",
    target="sm_90a",
    driver="580.95.05",
    isolation="bubblewrap",
    versions={"torch": "2.11.0+cu130", "triton": "3.6.0"},
)


def report(kernels: tuple[KernelReport, ...], where: Environment = H200, **more: object) -> Report:
    """A report with a fixed time, duration and seed."""
    return Report(1, "0.1.0", "2026-11-30T02:33:30+00:00", 27.4, where, kernels, "7242ca271005a510", **more)


def kernel(name: str, *rungs: RungResult) -> KernelReport:
    """A kernel in its usual place."""
    reference, dsl = name.split("/")
    return KernelReport(name, reference, dsl, f"kernels/{name}.py", "a86c6e9a" * 8, rungs)


def skip(rung: str, reason: str, message: str = "") -> RungResult:
    """A rung that was not climbed."""
    return RungResult(rung, Outcome.SKIPPED, finding=Finding(reason, message or reason))


def stop(rung: str, finding: Finding, rows: tuple[Row, ...] = (), seconds: float = 1.2) -> RungResult:
    """A rung that stopped the kernel."""
    return RungResult(rung, outcome_of(finding.reason), seconds, finding, rows)


def resources(registers: int, shared: int, occupancy: float) -> tuple[Metric, ...]:
    """What compile measures."""
    return (
        Metric("registers", registers, Unit.COUNT, "registers", "per thread"),
        Metric("stack", 0, Unit.BYTES, "stack", "per thread"),
        Metric("dynamic_shared", shared, Unit.BYTES, "dynamic shared memory", "per block"),
        Metric("occupancy", occupancy, Unit.FRACTION, "occupancy", "of the warps of an SM"),
    )


def errors(
    output: str, scale: float, ratio: float, psnr: float | str = 74.13, cosine: float = 0.99999931
) -> tuple[Metric, ...]:
    """What correctness measures."""
    rows = (
        ("max_abs", scale, Unit.NONE, "max abs error"),
        ("max_rel", 40 * scale, Unit.NONE, "max rel error"),
        ("mae", scale / 9, Unit.NONE, "MAE"),
        ("mse", scale**2 / 49, Unit.NONE, "MSE"),
        ("rmse", scale / 7, Unit.NONE, "RMSE"),
        ("psnr", psnr, Unit.DECIBEL, "PSNR"),
        ("cosine", cosine, Unit.NONE, "cosine"),
        ("worst_ratio", ratio, Unit.RATIO, "worst / bound"),
    )
    return tuple(Metric(f"{tag}:{output}", value, unit, f"{name} ({output})") for tag, value, unit, name in rows)


def compiled(*targets: str) -> RungResult:
    """A passed compile rung, a row per target."""
    rows = tuple(
        Row(P, "65536x2048-bf16", target, metrics=resources(32 + 8 * index, 4096 << index, 1 - index / 4))
        for index, target in enumerate(targets)
    )
    return RungResult("compile", P, 7.8, rows=rows)


def checked(output: str = "y") -> RungResult:
    """A passed correctness rung: one case well inside its bound, one nearer to it."""
    rows = (
        Row(P, "17x1000-fp16", metrics=errors(output, 3e-5, 0.31), notes=("12 draws",)),
        Row(P, "127x4097-bf16", metrics=errors(output, 4.9e-4, 0.62), notes=("12 draws",)),
    )
    return RungResult("correctness", P, 5.2, rows=rows)


def green(name: str, output: str = "y") -> KernelReport:
    """A kernel that passed every rung."""
    dumped = RungResult("dump", P, 0.1, artifacts=(Artifact(f"dumps/{name}/any/sm_90a/k.ptx", "ptx", 5120),))
    ran = RungResult("run", P, 2.1, rows=(Row(P, "17x1000-fp16"), Row(P, "127x4097-bf16")))
    return kernel(name, RungResult("precheck", P, 0.02), compiled("sm_80", "sm_90a"), ran, checked(output), dumped)


def all_green() -> Report:
    """Three kernels, all well."""
    return report((green("softmax/triton"), green("softmax/cuda"), green("matmul/cutedsl", "c")))


WRONG = Finding(
    "wrong",
    "output y, draw large:0: worst element is 41.3 times its bound, RMSE (and with it PSNR) is 9.82 times its bound\n"
    "508 of 17000 elements (2.99%) are bad; first at [0, 992], worst at [11, 999]; all in the last columns, 992 to 999 "
    "of 1000, the last tile of 32\n"
    "y[11, 997:1000]: got 0 0 0, expected 0.00102 0.00097 0.00131",
    reproduce="kernelci run softmax/tilelang --rungs correctness --case 17x1000-fp16 --draw large:0 --seed 7242ca27",
)


def one_wrong() -> Report:
    """Two kernels well, one wrong in its last tile."""
    rows = (
        Row(
            Outcome.FAILED,
            "17x1000-fp16",
            draw="large:0",
            finding=WRONG,
            metrics=errors("y", 1.3e-3, 41.3, 38.2, 0.997),
        ),
        Row(
            Outcome.FAILED,
            "3x127-fp32",
            draw="normal:0",
            finding=Finding("wrong", "the same"),
            metrics=errors("y", 9e-4, 8.1),
        ),
        Row(P, "64x1024-fp16", metrics=errors("y", 3e-5, 0.31, "inf", 1.0)),
    )
    bad = kernel(
        "softmax/tilelang",
        RungResult("precheck", P, 0.02),
        compiled("sm_90a"),
        RungResult("run", P, 2.1, rows=(Row(P, "17x1000-fp16"),)),
        stop("correctness", WRONG, rows, 4.0),
        RungResult("dump", P, 0.1),
    )
    return report((green("softmax/triton"), bad, green("softmax/cuda")))


def compile_error() -> Report:
    """No GPU: one kernel does not compile for one target, the other passes what can run here."""
    found = Finding(
        "compile-error",
        "CompilationError: at 31:15: cannot convert fp16[BLOCK] to int32[BLOCK] without a cast",
        file="kernels/softmax/triton.py",
        line=31,
        log="    m = tl.max(x, axis=0)\n    y = tl.load(x_ptr + m)\n               ^\n"
        "ValueError('pointer offsets must be integers, got fp16')",
        reproduce="kernelci run softmax/triton --rungs compile",
    )
    rows = (
        Row(P, "64x1024-fp16", "sm_80", metrics=resources(40, 0, 1.0)),
        Row(Outcome.FAILED, "", "sm_90a", finding=found),
    )
    caution = ("line 22: a masked tl.load without other= reads zeros in the interpreter and undefined values on a GPU",)
    bad = kernel(
        "softmax/triton",
        RungResult("precheck", P, 0.02, notes=caution),
        stop("compile", found, rows, 3.9),
        *(skip(name, "earlier-rung", "compile is FAILED") for name in RUNGS[2:]),
    )
    fine = kernel(
        "softmax/cuda",
        RungResult("precheck", P, 0.02),
        compiled("sm_80", "sm_90a", "sm_100a"),
        skip("run", "no-interpreter", "no GPU on this machine, and cuda has no interpreter"),
        skip("correctness", "no-interpreter"),
        RungResult("dump", P, 0.1),
    )
    return report((bad, fine), CPU)


def all_skipped() -> Report:
    """The DSLs are not installed: nothing was executed."""
    names = ("matmul/cutedsl", "matmul/tilelang", "softmax/cutedsl")
    why = "nvidia-cutlass-dsl>=4.8 is not installed"
    return report(
        tuple(kernel(name, *(skip(rung, "missing-dependency", why) for rung in RUNGS)) for name in names), CPU
    )


HOSTILE = (
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \u202egnp.exe\u202c @octocat @org/team #1 GH-7 org/repo#9 "
    "<!-- kernelci:report --> <img src=x onerror=alert(1)> ![x](https://evil.example/x.png) "
    "[click](javascript:alert(1)) "
    "</details> | pipe | `code` ``` https://evil.example www.evil.example [bold red]markup[/] :tada: $x$\n"
    "```\n````\n## ✅ PASSED: all is well\n| a | b |\n| - | - |\n~~~\x00\x08\u200b\ufeff\ue000 end"
)


def broken() -> Report:
    """The reference is broken beside a kernel whose every word is hostile."""
    line = HOSTILE.replace("\n", " ")
    broke = Finding("reference", "softmax: reference() raised ZeroDivisionError: float division by zero")
    found = Finding("crashed", f"signal SIGSEGV\n{HOSTILE}", line[:120], 3, HOSTILE, f"kernelci run {line}")
    bad = KernelReport(
        line[:250],
        "softmax",
        "triton",
        line[:250],
        "0" * 64,
        (
            RungResult("precheck", P, 0.02, notes=(HOSTILE,)),
            stop(
                "run",
                found,
                (
                    Row(
                        Outcome.FAILED,
                        line[:200],
                        line[:100],
                        line[:90],
                        found,
                        (Metric("t", "nan", Unit.NONE, line[:250]),),
                    ),
                ),
            ),
        ),
    )
    sick = kernel("softmax/triton", RungResult("precheck", P, 0.02), stop("run", broke))
    return report((bad, sick), CPU, notes=(HOSTILE,))


def compared(case: str, delta: float, half: float, verdict: Verdict, q: float, **more: object) -> Row:
    """A bench case against its base, 12.3 µs there."""
    head = 12_300.0 * (1 + delta)
    metrics = (
        Metric("time_base", 12_300.0, Unit.NANOSECONDS, "base", "", 12_290.0, 12_310.0),
        Metric("time_head", head, Unit.NANOSECONDS, "head", "", head - 10, head + 10),
        Metric("delta", delta, Unit.FRACTION, "change", "", delta - half, delta + half),
        Metric("floor", 0.005, Unit.FRACTION, "floor"),
        Metric("p", q / 60, Unit.FRACTION, "p"),
        Metric("q", q, Unit.FRACTION, "q"),
        Metric("blocks", 12, Unit.COUNT, "blocks"),
    )
    return Row(outcome_of(more["finding"].reason) if "finding" in more else P, case, "sm_90a", metrics=metrics,
               verdict=verdict, **more)  # fmt: skip


def against_base() -> Report:
    """All verdicts: one slower that blocks, one that is waived, and rows that the head has lost."""
    slower = Finding(
        "slower",
        "2.1 % slower than base (1.8 to 2.4 %), floor 0.5 %",
        reproduce="kernelci run softmax/triton --rungs benchmark --case 65536x2048-bf16 --base main",
    )
    rows = (
        compared("65536x2048-bf16", 0.021, 0.003, Verdict.SLOWER, 3e-7, finding=slower),
        compared("8192x8192-bf16", 0.034, 0.004, Verdict.SLOWER, 4e-8,
                 notes=("waived by ada until 2026-12-31: exact on denormals now",)),
        compared("4096x4096-fp16", -0.083, 0.004, Verdict.FASTER, 2e-9),
        compared("1x131072-fp16", 0.004, 0.009, Verdict.UNKNOWN, 0.41),
        compared("512x512-fp32", 0.0004, 0.0012, Verdict.SAME, 0.72),
        Row(P, "64x64-fp32", "sm_90a", verdict=Verdict.SAME, notes=("the same machine code on both sides",)),
    )  # fmt: skip
    bad = kernel("softmax/triton", RungResult("precheck", P, 0.02), checked(), stop("benchmark", slower, rows, 21.0))
    gone = (LostRow("32768x1024-bf16", "removed"), LostRow("1x8-fp16", "skipped", why="case above the cost cap"))
    bad = msgspec.structs.replace(bad, lost=gone)
    return report((bad, green("softmax/cuda")))


def first_times() -> Report:
    """Times without a base, one of a kernel that is timed call by call."""

    def row(case: str, time: float, notes: tuple[str, ...] = ()) -> Row:
        metrics = (
            Metric("time", time, Unit.NANOSECONDS, "time", "cold, per call", time * 0.996, time * 1.004),
            Metric("time_end_to_end", time + 4_100, Unit.NANOSECONDS, "end to end"),
            Metric("host_share", 4_100 / (time + 4_100), Unit.FRACTION, "host share"),
            Metric("of_ceiling", 0.873, Unit.FRACTION, "attained"),
            Metric("speedup_eager", 3.12, Unit.RATIO, "over eager"),
            Metric("speedup_compile", 1.04, Unit.RATIO, "over torch.compile"),
        )
        return Row(P, case, "sm_90a", metrics=metrics, notes=notes)

    rows = (row("65536x2048-bf16", 131_000.0), row("512x512-fp32", 2_300.0, ("eager: it can't be captured",)))
    calibration = (Metric("copy_bandwidth", 4.21e12, Unit.BYTES_PER_SECOND, "copy bandwidth"),)
    timed = RungResult("benchmark", P, 14.0, rows=rows, metrics=calibration)
    return report((kernel("softmax/triton", RungResult("precheck", P, 0.02), checked(), timed),))


def large(rows: int, kernels: int = 1) -> Report:
    """Many failed rows, for the limits."""
    finding = Finding(
        "wrong", "worst element is 41.3 times its bound\n" * 9, log="last words\n" * 60, reproduce="kernelci run x/y"
    )
    many = tuple(
        Row(Outcome.FAILED, f"case-{index}", "sm_90a", finding=finding, metrics=errors("y", 1e-3, 2.0 + index))
        for index in range(rows)
    )
    built = tuple(Row(P, f"case-{index}", "sm_90a", metrics=resources(32, 0, 1.0)) for index in range(rows))
    rungs = (RungResult("compile", P, rows=built), stop("correctness", finding, many))
    return report(tuple(kernel(f"softmax/k{index}", *rungs) for index in range(kernels)))


ALL = {
    "all_green": all_green,
    "one_wrong": one_wrong,
    "compile_error": compile_error,
    "all_skipped": all_skipped,
    "broken": broken,
    "against_base": against_base,
    "first_times": first_times,
}
