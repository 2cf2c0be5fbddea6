"""A matrix times a number."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, A, s):
        return A * s


def get_inputs():
    return [torch.randn(33, 65), 3.14]


def get_init_inputs():
    return []
