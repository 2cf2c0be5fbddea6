"""A diagonal matrix times another one."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, A, B):
        return torch.diag(A) @ B


def get_inputs():
    return [torch.rand(31), torch.rand(31, 18)]


def get_init_inputs():
    return []
