"""A linear layer's product: c[i, j] = sum_k a[i, k] * b[j, k], fp16 in and out, accumulated in float32."""

from kernelci.reference import Case, bench, check, sizes, tensor

domain = {"m": sizes(1, 512), "n": sizes(1, 512), "k": sizes(1, 2000)}


def cases():
    dtype = "float16"
    yield check(m=1, n=1, k=1, dtype=dtype)
    yield check("one tile", m=32, n=32, k=64, dtype=dtype)
    yield check("prime sizes", m=33, n=47, k=101, dtype=dtype)
    yield check("one past a tile, odd k", m=65, n=33, k=65, dtype=dtype)
    yield check("k much longer than m and n", m=4, n=3, k=1999, dtype=dtype)
    yield check("no rows", m=0, n=64, k=64, dtype=dtype)
    yield check("several tiles, odd n", m=257, n=301, k=512, dtype=dtype)
    yield bench("head projection of a small model", m=128, n=512, k=512, dtype=dtype)


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
