"""Lines of the L2 that one process marks as persisting end with the referee's word, before another window begins."""

import pytest
import torch

from kernelci.workbench.cuda_memory import nothing_persists

pytestmark = pytest.mark.gpu


def test_the_driver_takes_the_word() -> None:
    torch.zeros(1, device="cuda:0")
    nothing_persists("cuda:0")
    assert 0.0 == float(torch.zeros(1, device="cuda:0"))
