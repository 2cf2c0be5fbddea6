"""RMS norm of a sum, as in every block of a Llama:

h = x + residual;   residual_out = h;   y[i, :] = h[i, :] / sqrt(mean_j h[i, j]^2 + eps) * weight
"""

import torch

from kernelci.reference import Case, bench, check, like, sizes

domain = {"rows": sizes(1, 70_000), "cols": sizes(1, 70_000)}
independent = {"rows": ("x", "residual")}
layouts = {"x": "offset1", "weight": "offset7", "y": "offset3"}
library = {"torch.rms_norm": lambda x, residual, weight, eps: _by_torch(x + residual, weight, eps)}


def cases():
    for dtype in ("float32", "float16", "bfloat16"):
        yield check(rows=1, cols=1, dtype=dtype, eps=1e-6)
        yield check("one row", rows=1, cols=4096, dtype=dtype, eps=1e-6)
        yield check("one column", rows=257, cols=1, dtype=dtype, eps=1e-5)
        yield check("prime sizes", rows=3, cols=127, dtype=dtype, eps=1e-5)
        yield check("no multiple of 16 bytes", rows=17, cols=1003, dtype=dtype, eps=1e-6)
        yield check("one past a power of two", rows=5, cols=4097, dtype=dtype, eps=1e-6)
        yield check("an eps that shows when it is left out", rows=33, cols=512, dtype=dtype, eps=0.5)
        yield check("no rows", rows=0, cols=128, dtype=dtype, eps=1e-6)
        yield check("no columns", rows=5, cols=0, dtype=dtype, eps=1e-6)
    yield check("longer than a block", rows=2, cols=65537, dtype="float32", eps=1e-6)
    yield bench("decode of Llama 3 8B, batch of 64", rows=64, cols=4096, dtype="bfloat16", eps=1e-5)
    yield bench("decode of Llama 3 70B, batch of 256", rows=256, cols=8192, dtype="bfloat16", eps=1e-5)
    yield bench("prefill of Llama 3 8B, 4096 tokens", rows=4096, cols=4096, dtype="bfloat16", eps=1e-5)
    yield bench("prefill of Qwen3 32B, 16,384 tokens", rows=16384, cols=5120, dtype="float16", eps=1e-6)
    yield bench("prefill of Llama 3 70B, 65,536 tokens", rows=65536, cols=8192, dtype="bfloat16", eps=1e-5)


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
    if h.shape[-1] == 0:
        return h, h
    return h / (h.square().mean(dim=-1, keepdim=True) + eps).sqrt() * weight, h


def _by_torch(h, weight, eps):
    return torch.nn.functional.rms_norm(h, weight.shape, weight, eps), h


def cost(case: Case):
    return 6 * case.rows * case.cols  # sum, square, mean, quotient, product
