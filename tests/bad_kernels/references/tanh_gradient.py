"""The gradient of tanh on padded rows: dx[i, j] = dy[i, j] * (1 - y[i, j]^2).

Rows of `dy` and of `y` have pitches of their own, given in elements.
"""

from kernelci.reference import Case, bench, check, tensor


def cases():
    yield check("dense rows of one pitch", rows=5, cols=64, dy_pitch=64, y_pitch=64, dtype="float32")
    yield check("dy padded", rows=3, cols=127, dy_pitch=160, y_pitch=127, dtype="float32")
    yield check("y padded", rows=7, cols=33, dy_pitch=33, y_pitch=48, dtype="float32")
    yield bench("an MLP of 4096, 64 tokens", rows=64, cols=4096, dy_pitch=4096, y_pitch=4096, dtype="float32")


def inputs(case: Case, draw):
    return {
        "dy": draw.normal(case.rows, case.dy_pitch, dtype=case.dtype),
        "y": draw.uniform(case.rows, case.y_pitch, dtype=case.dtype, low=-1.0, high=1.0),
        "cols": case.cols,
    }


def outputs(case: Case):
    return {"dx": tensor(case.rows, case.cols, dtype=case.dtype)}


def reference(dy, y, cols):
    return dy[:, :cols] * (1 - y[:, :cols].square())


def cost(case: Case):
    return 3 * case.rows * case.cols
