"""y = 2 x in CUDA C++; the host functions ask what they all ask, launch in three ways, and describe a tensor to TMA."""

from pathlib import Path

import torch
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, Stream, launch

SOURCE = Path(__file__).with_suffix(".cu")


def ask(x):
    device = Device()
    device.set_current()
    assert x.is_cuda
    assert device.properties.multiprocessor_count == torch.cuda.get_device_properties(0).multi_processor_count
    assert tuple(device.compute_capability) == torch.cuda.get_device_capability()
    return device


def program(arch, text=None):
    return Program(text or SOURCE.read_text(), "c++", ProgramOptions(arch=arch, name=str(SOURCE)))


def by_launch(x, y):
    device = ask(x)
    kernel = program(f"sm_{device.arch}").compile("cubin").get_kernel("scale")
    stream = device.create_stream(torch.cuda.current_stream())
    launch(stream, LaunchConfig(grid=-(-x.numel() // 256), block=256), kernel, x.data_ptr(), y.data_ptr(), x.numel())


def by_template(x, y):
    ask(x)
    kernel = program(None).compile("cubin", name_expressions=("twice<64>",)).get_kernel("twice<64>")
    stream = Stream.from_handle(torch.cuda.current_stream().cuda_stream)
    config = LaunchConfig(grid=(2, 3), cluster=(2, 1, 1), block=64, shmem_size=512)
    launch(stream, config, kernel, x.data_ptr(), y.data_ptr(), 64)


def by_driver(x, y):
    ask(x)
    error, _ = driver.cuTensorMapEncodeTiled(
        driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        2,
        x.data_ptr(),
        [driver.cuuint64_t(64), driver.cuuint64_t(64)],
        [driver.cuuint64_t(256)],
        [driver.cuuint32_t(32), driver.cuuint32_t(32)],
        [driver.cuuint32_t(1), driver.cuuint32_t(1)],
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_NONE,
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_NONE,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    assert error == driver.CUresult.CUDA_SUCCESS
    kernel = program("sm_90a").compile("cubin").get_kernel("described")
    function = driver.CUfunction(int(kernel.handle))
    (error,) = driver.cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, torch.cuda.current_stream().cuda_stream, 0, 0)
    assert error == driver.CUresult.CUDA_SUCCESS


def does_not_compile(x, y):
    program("sm_90a", "__global__ void f() {\n  return 1 + nonsense;\n}\n").compile("cubin")
