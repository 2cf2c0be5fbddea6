"""A linear layer's product whose bench case keeps a plain kernel busy far longer than its launch takes."""

from kernelci.reference import Case, bench, check, sizes, tensor

domain = {"m": sizes(1, 256), "n": sizes(1, 256), "k": sizes(1, 512)}
independent = {"m": ("a",), "n": ("b",)}


def cases():
    dtype = "float16"
    yield check("one tile", m=32, n=32, k=64, dtype=dtype)
    yield check("prime sizes", m=33, n=47, k=101, dtype=dtype)
    yield check("no rows", m=0, n=64, k=64, dtype=dtype)
    yield check("several tiles, odd n", m=257, n=301, k=512, dtype=dtype)
    yield bench("down projection of a small model, 1024 tokens", m=1024, n=1024, k=4096, dtype=dtype)


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
