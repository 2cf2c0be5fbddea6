"""The stand-in GPU. Patches end with the context, so these tests need no process of their own."""

from collections.abc import Callable, Iterator

import pytest
import torch

from kernelci import gpus
from kernelci.workbench import standin

FACTS = gpus.for_target("sm_90a")


@pytest.fixture
def gpu() -> Iterator[None]:
    with standin.gpu(FACTS):
        yield


@pytest.fixture
def x(gpu: None) -> torch.Tensor:
    return standin.tensor((4, 8), torch.bfloat16)


def test_torch_sees_a_gpu(gpu: None) -> None:
    assert (True, 1, 0) == (torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.current_device())


def test_torch_sees_none_afterwards() -> None:
    before = torch.cuda.is_available
    with standin.gpu(FACTS):
        pass
    assert before is torch.cuda.is_available


def test_properties_are_the_targets(gpu: None) -> None:
    found = torch.cuda.get_device_properties(0)
    assert (132, 9, 232_448) == (found.multi_processor_count, found.major, found.shared_memory_per_block_optin)


def test_capability_is_the_targets(gpu: None) -> None:
    assert (9, 0) == torch.cuda.get_device_capability()


def test_there_is_a_current_stream(x: torch.Tensor) -> None:
    assert 0 == torch.cuda.current_stream(x.device).cuda_stream


def test_streams_events_and_synchronisation_do_nothing(gpu: None) -> None:
    with torch.cuda.stream(torch.cuda.Stream()), torch.cuda.device(0):
        torch.cuda.Event(enable_timing=True).record()
    assert torch.cuda.synchronize() is None


def test_a_tensor_is_on_the_gpu(x: torch.Tensor) -> None:
    assert (True, 0) == (x.is_cuda, x.get_device())


@pytest.mark.parametrize(("offset", "expected"), [(0, 0), (1, 2), (8, 0)])
def test_alignment_follows_the_storage_offset(gpu: None, offset: int, expected: int) -> None:
    assert expected == standin.tensor((4, 8), torch.bfloat16, offset=offset).data_ptr() % 16


def test_a_view_lies_inside_its_base(x: torch.Tensor) -> None:
    assert 16 == x[1:].data_ptr() - x.data_ptr()


def test_two_tensors_lie_apart(x: torch.Tensor) -> None:
    assert x.data_ptr() != torch.empty_like(x).data_ptr()


def test_strides_are_kept(gpu: None) -> None:
    assert (1, 4) == standin.tensor((4, 8), torch.float32, strides=(1, 4)).stride()


def test_size_zero_has_a_null_pointer(gpu: None) -> None:
    assert 0 == standin.tensor((0, 8), torch.float32).data_ptr()


@pytest.mark.parametrize(
    "make",
    [
        lambda x: torch.empty(3, device="cuda"),
        lambda x: torch.tensor([1.0], device=x.device),
        lambda x: torch.zeros_like(x),
        lambda x: x.new_zeros(3),
        lambda x: x.to(torch.float32),
        lambda x: x.view(-1),
        lambda x: x.t().contiguous(),
        lambda x: x[:, ::2].contiguous(),
        lambda x: x.cpu().cuda(),
        lambda x: torch.empty(3).to("cuda"),
        lambda x: x @ x.t(),
        lambda x: x.copy_(x.clone()),
    ],
)
def test_host_code_may_allocate_and_reshape(x: torch.Tensor, make: Callable[[torch.Tensor], torch.Tensor]) -> None:
    assert "cuda" == make(x).device.type


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: x.sum().item(),
        lambda x: x.tolist(),
        lambda x: x.cpu().numpy(),
        lambda x: bool(x[0, 0] > 0),
        lambda x: float(x[0, 0]),
        lambda x: x.nonzero(),
        lambda x: x[x > 0],
        lambda x: torch.equal(x, x.clone()),
    ],
)
def test_values_are_refused(ask: Callable[[torch.Tensor], object]) -> None:
    with pytest.raises(standin.NeedsData), standin.gpu(FACTS):
        ask(standin.tensor((4, 8), torch.bfloat16))


def test_a_refusal_names_the_line() -> None:
    with pytest.raises(standin.NeedsData) as caught, standin.gpu(FACTS):
        standin.tensor((4,), torch.float32).sum().item()
    assert (__file__, 2) == (
        caught.value.file,
        caught.value.line - test_a_refusal_names_the_line.__code__.co_firstlineno,
    )


def test_other_exceptions_pass_through() -> None:
    with pytest.raises(ZeroDivisionError), standin.gpu(FACTS):
        _ = 1 // 0


def test_dlpack_tells_address_and_device(x: torch.Tensor) -> None:
    assert ((2, 0), "dltensor") == (x.__dlpack_device__(), str(x.__dlpack__()).split('"')[1])
