"""Twice a matrix that lies anywhere in a buffer: y[i, j] = 2 * x[offset + i * row_stride + j * column_stride]."""

from kernelci.reference import Case, bench, check, tensor


def cases():
    size = 4096
    yield check("dense", size=size, offset=0, rows=16, cols=32, row_stride=32, column_stride=1, dtype="float32")
    yield check("transposed", size=size, offset=0, rows=31, cols=17, row_stride=1, column_stride=31, dtype="float32")
    yield check("every second", size=size, offset=0, rows=9, cols=30, row_stride=60, column_stride=2, dtype="float32")
    yield check("shifted by 1", size=size, offset=1, rows=16, cols=64, row_stride=64, column_stride=1, dtype="float32")
    yield check("shifted by 7", size=size, offset=7, rows=16, cols=64, row_stride=64, column_stride=1, dtype="float32")
    yield bench("dense", size=2**20, offset=0, rows=1024, cols=1024, row_stride=1024, column_stride=1, dtype="float32")


def inputs(case: Case, draw):
    return {
        "x": draw.normal(case.size, dtype=case.dtype),
        "offset": case.offset,
        "rows": case.rows,
        "cols": case.cols,
        "row_stride": case.row_stride,
        "column_stride": case.column_stride,
    }


def outputs(case: Case):
    return {"y": tensor(case.rows, case.cols, dtype=case.dtype)}


def reference(x, offset, rows, cols, row_stride, column_stride):
    return 2 * x.as_strided((rows, cols), (row_stride, column_stride), offset)


def cost(case: Case):
    return case.rows * case.cols
