"""Which GPUs a run takes, and what of them a candidate sees."""

from pathlib import Path

import pytest

from kernelci.config import load
from kernelci.errors import ConfigError
from kernelci.workbench import sandbox
from kernelci.workbench.device import Device, choose

CPU = (Device("cpu"),)
GPUS = tuple(Device(f"cuda:{number}", "H200") for number in range(4))


@pytest.mark.parametrize(
    ("wanted", "numbers"), [("1", [0]), ("3", [0, 1, 2]), ("all", [0, 1, 2, 3]), ("2,0,2", [2, 0]), ("1,", [1])]
)
def test_gpus_by_count_and_by_number(wanted: str, numbers: list[int]) -> None:
    assert [f"cuda:{number}" for number in numbers] == [device.torch_name for device in choose(wanted, GPUS)]


@pytest.mark.parametrize("wanted", ["5", "0,4", "4,"])
def test_more_than_there_are(wanted: str) -> None:
    with pytest.raises(ConfigError, match="this machine has 4") as caught:
        choose(wanted, GPUS)
    assert "gpus" == caught.value.code


def test_gpus_of_several_kinds_do_not_make_one_run() -> None:
    mixed = (*GPUS, Device("cuda:4", "L4"))
    assert GPUS[:2] == choose("2", mixed)
    with pytest.raises(ConfigError, match="several kinds: H200, L4"):
        choose("all", mixed)


@pytest.mark.parametrize("wanted", ["1", "all", "7", "0,1"])
def test_without_a_gpu_it_is_the_cpu(wanted: str) -> None:
    assert CPU == choose(wanted, CPU)


@pytest.mark.parametrize("wanted", ["0", "-1", "two", "0,,1", ",", ""])
def test_what_names_no_gpus(tmp_path: Path, wanted: str) -> None:
    with pytest.raises(ConfigError, match="gpus"):
        load(tmp_path, {}, {"gpus": wanted})


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    """A folder like /dev on a host with two GPUs."""
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "null"):
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("number", "shown"), [(1, ["nvidia1"]), (None, ["nvidia0", "nvidia1"]), (7, ["nvidia0", "nvidia1"])]
)
def test_only_its_own_gpu_is_shown(nodes: Path, number: int | None, shown: list[str]) -> None:
    names = [Path(node).name for node in sandbox.gpu_nodes(number, nodes)]
    assert [*shown, "nvidiactl", "nvidia-uvm"] == names


def test_a_gpu_that_is_shown_among_others_is_chosen_by_its_uuid(nodes: Path) -> None:
    assert ("GPU-a", "") == (sandbox.visible_gpu(None, "GPU-a", nodes), sandbox.visible_gpu(None, "", nodes))


@pytest.mark.skipif(not sandbox.level().sandboxed, reason=f"no sandbox here: {sandbox.level().why}")
def test_a_gpu_that_is_shown_alone_is_the_first(nodes: Path) -> None:
    assert "0" == sandbox.visible_gpu(1, "GPU-a", nodes)
