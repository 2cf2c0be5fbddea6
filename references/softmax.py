"""Softmax over the last axis: y[i, j] = exp(x[i, j]) / sum_k exp(x[i, k])."""

import torch

from kernelci.reference import Case, bench, check, like, sizes

domain = {"rows": sizes(1, 70_000), "cols": sizes(1, 140_000)}
independent = {"rows": ("x",)}
layouts = {"x": "offset1", "y": "offset3"}
library = {"torch.softmax": lambda x: torch.softmax(x, dim=-1)}


def cases():
    for dtype in ("float32", "float16", "bfloat16"):
        yield check(rows=1, cols=1, dtype=dtype)
        yield check("one row", rows=1, cols=4096, dtype=dtype)
        yield check("one column", rows=257, cols=1, dtype=dtype)
        yield check("prime sizes", rows=3, cols=127, dtype=dtype)
        yield check("no multiple of 16 bytes", rows=17, cols=1003, dtype=dtype)
        yield check("one past a power of two", rows=5, cols=4097, dtype=dtype)
        yield check("one below a power of two", rows=33, cols=511, dtype=dtype)
        yield check("no rows", rows=0, cols=128, dtype=dtype)
        yield check("no columns", rows=5, cols=0, dtype=dtype)
    yield check("longer than a block", rows=2, cols=131073, dtype="float32")
    yield check("a masked row: all but its end is -inf", rows=1, cols=70001, dtype="float32", masked="most")
    yield check("a vocabulary", rows=7, cols=128256, dtype="bfloat16")
    yield bench("one attention head of GPT-2, 64 queries", rows=64, cols=1024, dtype="float16")
    yield bench("router of DeepSeek-V3, 256 experts, 8192 tokens", rows=8192, cols=256, dtype="float32")
    yield bench("attention scores of Llama 3 8B, 32 heads, 2048 x 2048", rows=65536, cols=2048, dtype="bfloat16")
    yield bench("logits of Llama 3, 128,256 tokens, batch of 2048", rows=2048, cols=128256, dtype="bfloat16")
    yield bench("attention scores of Llama 3 70B, 64 heads, 2048 x 8192", rows=131072, cols=8192, dtype="bfloat16")


KEPT = 1000  # columns at the end of a masked row


def inputs(case: Case, draw):
    x = draw.normal(case.rows, case.cols, dtype=case.dtype)
    if getattr(case, "masked", ""):
        x[:, :-KEPT] = -torch.inf
    return {"x": x}


def outputs(case: Case):
    return {"y": like("x")}


def reference(x):
    if x.shape[-1] == 0:
        return x.clone()
    e = torch.exp(x - x.amax(dim=-1, keepdim=True))
    return e / e.sum(dim=-1, keepdim=True)


def cost(case: Case):
    return 5 * case.rows * case.cols  # maximum, difference, exp, sum, quotient
