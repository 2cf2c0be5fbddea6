"""RMS norm of a sum: h = x + residual; residual_out = h; y = h / sqrt(mean_j h[i, j]^2 + eps) * weight."""

from kernelci.reference import Case, bench, check, like, sizes

domain = {"rows": sizes(1, 70_000), "cols": sizes(1, 4096)}


def cases():
    for dtype in ("float32", "float16"):
        yield check(rows=1, cols=1, dtype=dtype, eps=1e-6)
        yield check("prime sizes", rows=3, cols=127, dtype=dtype, eps=1e-5)
        yield check("an eps that shows when it is left out", rows=5, cols=127, dtype=dtype, eps=0.5)
        yield check("one row", rows=1, cols=2049, dtype=dtype, eps=1e-6)
    yield check("no rows", rows=0, cols=128, dtype="float32", eps=1e-6)
    yield bench("decode of Llama 3 8B, batch of 64", rows=64, cols=4096, dtype="float16", eps=1e-5)


def inputs(case: Case, draw):
    return {
        "x": draw.normal(case.rows, case.cols, dtype=case.dtype),
        "residual": draw.normal(case.rows, case.cols, dtype=case.dtype),
        "weight": draw.normal(case.cols, dtype=case.dtype, mean=1.0),
        "eps": case.eps,
    }


def outputs(case: Case):
    return {"y": like("x"), "residual_out": like("x")}


def reference(x, residual, weight, eps):
    h = x + residual
    return h / (h.square().mean(dim=-1, keepdim=True) + eps).sqrt() * weight, h


def cost(case: Case):
    return 6 * case.rows * case.cols
