"""A candidate sees the one GPU of its lane, as cuda:0, and no other; the referee's memory lies on the same one."""

from pathlib import Path

import pytest

from kernelci import catalog, config, ladder
from kernelci.referee import KernelReferee
from kernelci.workbench.device import find_all
from kernelci.workbench.nvml_handle import uuid_of

pytestmark = pytest.mark.gpu

REFERENCE = """
from kernelci.reference import check, like
def cases():
    yield check(n=17, dtype="float32")
def inputs(case, draw):
    return {"x": draw.normal(case.n, dtype=case.dtype)}
def outputs(case):
    return {"y": like("x")}
def reference(x):
    return x
"""
# Answers with the number of GPUs that it sees, and the bytes of its own one's UUID.
KERNEL = """# /// script
# [tool.kernelci]
# reference = "copy"
# backend = "triton"
# entry = "tell"
# ///
import uuid
import torch
def tell(x, y):
    own = uuid.UUID(str(torch.cuda.get_device_properties(x.device).uuid))
    y.copy_(torch.tensor([torch.cuda.device_count(), *own.bytes], dtype=y.dtype))
"""


def _file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_each_lane_has_one_gpu(tmp_path: Path) -> None:
    _file(tmp_path / "references" / "copy.py", REFERENCE)
    _file(tmp_path / "kernels" / "copy" / "tell.py", KERNEL)
    options = config.load(tmp_path, {}, {"cache": str(tmp_path / "cache"), "gpus": "all"})
    found = catalog.scan(tmp_path, options)
    told, expected = [], [uuid_of(device.torch_name) for device in find_all()]
    with ladder.opened(found, options, ladder.Plan(found.kernels, tmp_path / "out")) as court:
        for one in ladder.courts(court):
            referee = KernelReferee(found.kernels[0], one, ())
            with referee.on(one):
                outputs = referee.trial(referee.cases()[0], "normal:0").outputs["y"]
                told.append([int(number) for number in outputs])
    assert [[1, *bytes.fromhex(name.removeprefix("GPU-").replace("-", ""))] for name in expected] == told
