"""What tests of problems share: a file's text as a loaded reference."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kernelci.reference import Reference, load

Loaded = Callable[..., Reference]
PROBLEM = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, *arguments):
        super().__init__()
        {init}

    def forward(self, {names}):
        return {forward}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return [{arguments}]
"""


@pytest.fixture
def loaded(tmp_path: Path) -> Loaded:
    """Write a KernelBench problem of these parts, and load it."""

    def make(
        inputs: str = "torch.randn(4, 8)",
        forward: str = "x + 1",
        init: str = "pass",
        names: str = "x",
        arguments: str = "",
    ) -> Reference:
        path = tmp_path / "problem.py"
        text = PROBLEM.format(inputs=inputs, forward=forward, init=init, names=names, arguments=arguments)
        path.write_text(text, encoding="utf-8")
        return load(path)

    return make
