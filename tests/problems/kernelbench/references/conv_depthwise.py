"""A convolution of each channel alone."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, size):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, size, groups=channels, bias=False)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.rand(2, 6, 9, 9)]


def get_init_inputs():
    return [6, 3]
