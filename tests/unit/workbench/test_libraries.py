"""Names of kernels: whose they are."""

import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci.workbench.libraries import libraries, library_of, readable, stem

CUTE = "kernel_cutlass_softmax_in_registers_tensorptrf16gmemalign16o8i64div818_tensorptrf16gmemalign16o8i64div818_8_0"


@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NNT", "cuBLAS"),
        ("nvjet_sm100_tst_64x32_64x16_2x1_2cta_h_bz_TNN", "cuBLAS"),
        ("ampere_sgemm_128x64_nn", "cuBLAS"),
        ("ampere_bf16_s16816gemm_bf16_64x64_sliced1x2_ldg8_f2f_stages_64x5_nn", "cuBLAS"),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_cublas", "cuBLAS"),
        ("_ZN7cutlass7Kernel2I52cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32EEvNT_6ParamsE", "cuBLAS"),
        ("void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32>(T1::Params)", "cuBLAS"),
        ("cutlass_80_tensorop_i16832gemm_s8_128x64_128x3_tn_align16", "cuBLAS"),
        ("cutlass3x_sm90_tensorop_s64x128x16gemm_f16_f16_f32_f16_f16_128x128x64", "cuBLAS"),
        ("_ZN8cublasLt19splitKreduce_kernelILi32ELi16Ei13__nv_bfloat16S1_fS1_Lb0EEEv", "cuBLAS"),
        ("void gemv2T_kernel_val<int, int, float, float>(cublasGemvParamsEx<int>)", "cuBLAS"),
        ("_ZN8internal5gemvx6kernelIiifffLb0ELb1ELb0ELb0ELi7ELb0E18cublasGemvParamsEx", "cuBLAS"),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x", "cuDNN"),
        ("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEEviT0_", "ATen"),
        ("void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float>", "ATen"),
        ("_ZN14at_cuda_detail3cub17CUB_200200_900_NS16DeviceScanKernelE", "ATen"),
        ("_ZN13pytorch_flash16flash_fwd_kernelI23Flash_fwd_kernel_traitsEEvNS_16Flash_fwd_paramsE", "ATen"),
        ("_Z40fmha_cutlassF_f32_aligned_64x64_rf_sm80N22PyTorchMemEffAttention15AttentionKernelE", "ATen"),
        ("triton_poi_fused_add_mul_0", "TorchInductor"),
        ("triton_tem_fused_mm_3", "TorchInductor"),
        ("_ZN3cub17CUB_200500_900_NS18DeviceReduceKernelINS1_10policy_hubE", "CUB"),
        ("_ZN6thrust8cuda_cub4core13_kernel_agentE", "CUB"),
        ("_ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalEEEvNT_6ParamsE", "CUTLASS"),
        ("_ZN5flash16flash_fwd_kernelI23Flash_fwd_kernel_traitsE", "FlashAttention"),
        ("void regular_fft<512u, EPT<8u>>(kernel_arguments_t)", "cuFFT"),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "NCCL"),
    ],
)
def test_known(name: str, library: str) -> None:
    found = library_of(name)

    assert found is not None
    assert library in found.name


@pytest.mark.parametrize(
    "name",
    [
        CUTE,
        "kernel_cutlass_kernel___main__DenseGemmKernel_object_at__TiledMMA_ThrLayoutVMNK11110000",
        "softmax_tile",
        "_Z12softmax_heldI7Float16Li8ELi4ELi32EEvPKT_PS1_xx",
        "main_kernel",
        "matmul_kernel",
        "gemm_kernel",
        "my_hopper_gemm",
        "triton_matmul",
        "reduce_kernel",
        "flash_attention",
        "cublas_style_matmul",
        "hopper_gemm_128x128",
        "trmm_kernel",
        "vector_fft",
        "my_cudnn_softmax",
        "",
    ],
)
def test_anybodys(name: str) -> None:
    assert None is library_of(name)


def test_a_name_that_only_a_library_has_goes_first() -> None:
    assert not libraries()[0].yours
    assert libraries()[-1].yours


@pytest.mark.parametrize("library", libraries(), ids=lambda library: library.name)
def test_each_has_patterns_that_do_not_match_everything(library: object) -> None:
    patterns = getattr(library, "patterns", ())
    assert patterns
    assert not any(re.search(pattern, "softmax_kernel") or re.search(pattern, "") for pattern in patterns)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("_ZN2at6native18elementwise_kernelILi128E", "at::native::elementwise_kernel"),
        ("_ZN2at6native12_GLOBAL__N_119cunn_SoftMaxForwardE", "at::native::(anonymous)::cunn_SoftMaxForward"),
        ("_Z12softmax_heldI7Float16Li8E", "softmax_held"),
        ("softmax_tile", "softmax_tile"),
        ("_ZL5quiet", "_ZL5quiet"),
    ],
)
def test_readable(name: str, text: str) -> None:
    assert text == readable(name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (CUTE, "kernel_cutlass_softmax_in_registers"),
        (
            "kernel_cutlass_matmul_tma_Copy_Atom_ThrID_10_TV_Layout_Src_1819201_TV_Layout_Dst_1819201_Value_type_bf16_0",
            "kernel_cutlass_matmul_tma",
        ),
        ("kernel_cutlass_gemm_TiledMMA_ThrLayoutVMNK11110000_PermutationMNK_0", "kernel_cutlass_gemm"),
        ("softmax_tile_0d1d2de", "softmax_tile"),
        ("_Z12softmax_heldI7Float32Li4E", "softmax_held"),
        ("softmax_tile", "softmax_tile"),
    ],
)
def test_stem(name: str, expected: str) -> None:
    assert expected == stem(name)


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=200) | st.from_regex(r"_ZN?[0-9A-Za-z]*"))
def test_any_name_is_read(name: str) -> None:
    assert len(readable(name)) <= 2 * len(name) + 11
    library_of(name)
    stem(name)


WARP = "_ZN43_GLOBAL__N__b6de9c8c_10_SoftMax_cu_9f978f6320softmax_warp_forwardIN3c104HalfES2_fLi8EEEvPT0_PKT_iii"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of sys.path with torch's library in it, which registers one kernel."""
    file = tmp_path / "torch" / "lib" / "libtorch_cuda.so"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"\x7fELF\0" + WARP.encode() + b"\0softmax_kernel\0")
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "nowhere")])
    library_of.cache_clear()
    return file


def test_a_name_that_a_librarys_file_holds_is_its_own(installed: Path) -> None:
    found = library_of(WARP)
    assert found is not None
    assert "ATen (PyTorch)" == found.name


@pytest.mark.parametrize("name", [WARP[:-1], WARP + "i", "softmax_kernel", "_Z11softmax_tilePf"])
def test_part_of_such_a_name_or_a_plain_one_is_nobodys(installed: Path, name: str) -> None:
    assert None is library_of(name)


def test_a_file_that_is_empty_holds_nothing(installed: Path) -> None:
    installed.write_bytes(b"")
    assert None is library_of(WARP)
