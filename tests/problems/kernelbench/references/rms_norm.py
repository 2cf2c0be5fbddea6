"""Each entry over the root mean square of all features."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features, eps: float = 1e-5):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        return x / torch.sqrt(torch.mean(x**2, dim=1, keepdim=True) + self.eps)


def get_inputs():
    return [torch.randn(4, 16, 6)]


def get_init_inputs():
    return [16]
