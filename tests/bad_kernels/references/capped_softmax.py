"""Softmax of capped scores, as Gemma 2 has them: y = softmax(cap * tanh(x / cap)) over the last axis."""

import torch

from kernelci.reference import Case, bench, check, like


def cases():
    yield check("a row that fills its tile", rows=4, cols=128, cap=5.0, dtype="float32")
    yield check("prime sizes", rows=3, cols=127, cap=5.0, dtype="float32")
    yield check("one past a power of two", rows=3, cols=1025, cap=30.0, dtype="float32")
    yield bench("attention scores of Gemma 2 9B, 64 queries", rows=64, cols=2048, cap=50.0, dtype="float32")


def inputs(case: Case, draw):
    return {"x": draw.normal(case.rows, case.cols, dtype=case.dtype), "cap": case.cap}


def outputs(case: Case):
    return {"y": like("x")}


def reference(x, cap):
    scores = cap * torch.tanh(x / cap)
    e = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return e / e.sum(dim=-1, keepdim=True)


def cost(case: Case):
    return 8 * case.rows * case.cols
