"""y = x @ x.T in TileLang, whose generated host code describes the tensors to TMA."""

import tilelang
import tilelang.language as T  # noqa: N812
import torch


@tilelang.jit
def gram(rows, columns, block=64, stages=2):
    @T.prim_func
    def gram_kernel(x: T.Tensor((rows, columns), "bfloat16"), y: T.Tensor((rows, rows), "bfloat16")):
        with T.Kernel(T.ceildiv(rows, block), T.ceildiv(rows, block), threads=128) as (i, j):
            left = T.alloc_shared((block, 64), "bfloat16")
            right = T.alloc_shared((block, 64), "bfloat16")
            total = T.alloc_fragment((block, block), "float32")
            T.clear(total)
            for k in T.Pipelined(T.ceildiv(columns, 64), num_stages=stages):
                T.copy(x[j * block, k * 64], left)
                T.copy(x[i * block, k * 64], right)
                T.gemm(left, right, total, transpose_B=True)
            T.copy(total, y[j * block, i * block])

    return gram_kernel


def ask(x):
    assert x.is_cuda
    assert torch.cuda.get_device_properties(x.device).multi_processor_count > 1
    assert torch.cuda.get_device_capability()[0] >= 8
    assert isinstance(torch.cuda.current_stream().cuda_stream, int)


def multiply(x, y):
    ask(x)
    gram(*x.shape)(x, y)


def too_large(x, y):
    gram(*x.shape, block=128, stages=9)(x, y)


def does_not_compile(x, y):
    gram(*x.shape, block=60)(x, y)  # the error
