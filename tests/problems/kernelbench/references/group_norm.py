"""Group normalisation."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features, groups):
        super().__init__()
        self.gn = nn.GroupNorm(groups, features)

    def forward(self, x):
        return self.gn(x)


def get_inputs():
    return [torch.rand(3, 8, 5, 5)]


def get_init_inputs():
    return [8, 4]
