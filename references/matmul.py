"""A linear layer's product: c[i, j] = sum_k a[i, k] * b[j, k], bf16 in and out, accumulated in float32.

Both operands are contiguous along k, as the weight of `torch.nn.Linear` is.
"""

import torch

from kernelci.reference import Case, bench, check, sizes, tensor

domain = {"m": sizes(1, 4096), "n": sizes(1, 4096), "k": sizes(1, 8192)}
independent = {"m": ("a",), "n": ("b",)}
layouts = {"a": "offset1", "b": "offset7", "c": "offset3"}
library = {"cuBLAS": lambda a, b: torch.nn.functional.linear(a, b)}


def cases():
    dtype = "bfloat16"
    yield check(m=1, n=1, k=1, dtype=dtype)
    yield check("one row", m=1, n=512, k=512, dtype=dtype)
    yield check("one column", m=512, n=1, k=512, dtype=dtype)
    yield check("one tile", m=128, n=128, k=64, dtype=dtype)
    yield check("one past and one below a tile, odd k", m=127, n=129, k=65, dtype=dtype)
    yield check("prime sizes", m=33, n=47, k=101, dtype=dtype)
    yield check("n and k multiples of 8 only", m=130, n=264, k=136, dtype=dtype)
    yield check("aligned rows, less than a tile of n", m=136, n=40, k=72, dtype=dtype)
    yield check("several tiles, odd n", m=257, n=301, k=512, dtype=dtype)
    yield check("k much longer than m and n", m=64, n=72, k=8192, dtype=dtype)
    yield check("more tiles than multiprocessors", m=2050, n=2312, k=192, dtype=dtype)
    yield check("many tiles below each other, odd n and k", m=1100, n=7, k=5, dtype=dtype)
    yield check("nothing to sum", m=64, n=64, k=0, dtype=dtype)
    yield check("no rows", m=0, n=64, k=64, dtype=dtype)
    yield check("no columns", m=64, n=0, k=64, dtype=dtype)
    yield bench("head projection of a small model", m=128, n=512, k=512, dtype=dtype)
    yield bench("decode of Llama 3 8B, batch of 16", m=16, n=4096, k=4096, dtype=dtype)
    yield bench("qkv of Llama 3 8B, 2048 tokens", m=2048, n=6144, k=4096, dtype=dtype)
    yield bench("4096 cubed", m=4096, n=4096, k=4096, dtype=dtype)
    yield bench("up projection of Llama 3 70B, 8192 tokens, a third", m=8192, n=9728, k=8192, dtype=dtype)


def inputs(case: Case, draw):
    return {
        "a": draw.normal(case.m, case.k, dtype=case.dtype),
        "b": draw.normal(case.n, case.k, dtype=case.dtype),
    }


def outputs(case: Case):
    return {"c": tensor(case.m, case.n, dtype=case.dtype)}


def reference(a, b):
    return a @ b.T


def cost(case: Case):
    return 2 * case.m * case.n * case.k
