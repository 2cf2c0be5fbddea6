"""Log-sum-exp of a row's window: y[i] = log(sum of exp(x[i, j]) over start[i] <= j < start[i] + width)."""

import torch

from kernelci.reference import Case, bench, check, tensor


def cases():
    yield check("a window over everything", rows=3, cols=96, width=96, dtype="float32")
    yield check("one valid column, anywhere", rows=37, cols=256, width=1, dtype="float32")
    yield check("whole tiles outside the window", rows=5, cols=1000, width=40, dtype="float32")
    yield bench("local attention, a window of 512 in 4096", rows=512, cols=4096, width=512, dtype="float32")


def inputs(case: Case, draw):
    return {
        "x": draw.normal(case.rows, case.cols, dtype=case.dtype),
        "start": draw.integers(case.rows, low=0, high=case.cols - case.width + 1, dtype=torch.int32),
        "width": case.width,
    }


def outputs(case: Case):
    return {"y": tensor(case.rows, dtype=case.dtype)}


def reference(x, start, width):
    column = torch.arange(x.shape[1], device=x.device)
    inside = (column >= start[:, None]) & (column < start[:, None] + width)
    return torch.logsumexp(torch.where(inside, x, float("-inf")), dim=1)


def cost(case: Case):
    return 4 * case.rows * case.cols
