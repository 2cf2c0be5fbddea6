"""The table of GPUs."""

import msgspec
import pytest

from kernelci import gpus

USER = {
    "mine": {**msgspec.to_builtins(gpus.for_target("sm_90a")), "name": "Mine", "match": ["MINE 9"], "sm_count": 7},
}


def test_every_gpu_names_its_sources() -> None:
    assert all(source.startswith("https://") for gpu in gpus.gpus().values() for source in gpu.source)


def test_every_gpu_has_a_source() -> None:
    assert [] == [name for name, gpu in gpus.gpus().items() if not gpu.source]


def test_capability_agrees_with_target() -> None:
    expected = {name: gpu.capability_number for name, gpu in gpus.gpus().items()}
    assert expected == {name: int(gpu.target.strip("sm_a")) for name, gpu in gpus.gpus().items()}


def test_a_block_never_gets_all_of_an_sms_shared_memory() -> None:
    for gpu in gpus.gpus().values():
        reserved = gpu.reserved_shared_memory_per_block_bytes
        assert gpu.shared_memory_per_sm_bytes == gpu.shared_memory_per_block_optin_bytes + reserved


def test_lower_precision_is_never_slower() -> None:
    for gpu in gpus.gpus().values():
        peaks = gpu.peak_flops_per_s
        assert peaks["float32"] <= peaks["tf32"] <= peaks["float16"] == peaks["bfloat16"]


def test_the_peak_of_a_dtype_is_that_of_the_fastest_unit_that_may_compute_it() -> None:
    h200 = gpus.gpus()["h200"]
    peaks = h200.peak_flops_per_s
    expected = [peaks["tf32"], peaks["bfloat16"], peaks["float8"], 0.0]
    assert expected == [h200.peak(dtype) for dtype in ("float32", "bfloat16", "float8_e4m3fn", "complex64")]


def test_a_target_has_one_representative() -> None:
    assert "NVIDIA H100 80GB HBM3" == gpus.for_target("sm_90a").name


def test_a_targets_suffix_may_be_left_out() -> None:
    assert "sm_100a" == gpus.for_target("sm_100").target


def test_an_unknown_target_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="sm_35"):
        gpus.for_target("sm_35")


@pytest.mark.parametrize(
    ("device", "key"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA L4", "l4"),
        ("NVIDIA GeForce RTX 4090", "rtx_4090"),
    ],
)
def test_a_device_is_found_by_its_name(device: str, key: str) -> None:
    assert gpus.gpus()[key] == gpus.by_name(device)


def test_an_unknown_device_is_none() -> None:
    assert gpus.by_name("GeForce 256") is None


def test_a_users_table_represents_its_target() -> None:
    assert 7 == gpus.for_target("sm_90a", USER).sm_count


def test_a_users_device_is_found_by_its_name() -> None:
    found = gpus.by_name("NVIDIA MINE 9", USER)
    assert found is not None
    assert "Mine" == found.name


def test_a_misspelt_field_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        gpus.gpus({"mine": {**USER["mine"], "l2_byte": 1}})


def test_an_unknown_target_is_told_with_those_that_there_are() -> None:
    known = "sm_100a, sm_120a, sm_80, sm_89, sm_90a"

    assert f"no GPU in gpus.toml has the target 'sm_35'; known: {known}" == gpus.unknown(["sm_80", "sm_35"])
