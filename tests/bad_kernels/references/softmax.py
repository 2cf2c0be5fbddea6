"""Softmax over the last axis: y[i, j] = exp(x[i, j]) / sum_k exp(x[i, k])."""

import torch

from kernelci.reference import Case, bench, check, like, sizes

domain = {"rows": sizes(1, 70_001), "cols": sizes(1, 4096)}


def cases():
    for dtype in ("float32", "float16"):
        yield check(rows=1, cols=1, dtype=dtype)
        yield check("one row", rows=1, cols=4096, dtype=dtype)
        yield check("prime sizes", rows=3, cols=127, dtype=dtype)
        yield check("one past a power of two", rows=6, cols=257, dtype=dtype)
    yield check("one column", rows=257, cols=1, dtype="float32")
    yield check("no multiple of 16 bytes", rows=7, cols=1003, dtype="float32")
    yield check("no rows", rows=0, cols=128, dtype="float32")
    yield check("more rows than a grid's second axis takes", rows=70001, cols=4, dtype="float32")
    yield bench("router of DeepSeek-V3, 256 experts, 8192 tokens", rows=8192, cols=256, dtype="float32")
    yield bench("one attention head of GPT-2, 64 queries", rows=64, cols=1024, dtype="float16")


def inputs(case: Case, draw):
    return {"x": draw.normal(case.rows, case.cols, dtype=case.dtype)}


def outputs(case: Case):
    return {"y": like("x")}


def reference(x):
    if x.shape[-1] == 0:
        return x.clone()
    e = torch.exp(x - x.amax(dim=-1, keepdim=True))
    return e / e.sum(dim=-1, keepdim=True)


def cost(case: Case):
    return 5 * case.rows * case.cols  # maximum, difference, exp, sum, quotient
