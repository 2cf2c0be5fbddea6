"""A convolution with its bias."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, inputs, outputs, size):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, size)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.rand(2, 3, 10, 12)]


def get_init_inputs():
    return [3, 5, 3]
