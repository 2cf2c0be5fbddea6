"""A product whose first factor is transposed."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, A, B):
        return torch.matmul(A.T, B)


def get_inputs():
    return [torch.randn(40, 24), torch.randn(40, 33)]


def get_init_inputs():
    return []
