"""A product for each of a batch."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, A, B):
        return torch.bmm(A, B)


def get_inputs():
    return [torch.rand(3, 17, 20), torch.rand(3, 20, 9)]


def get_init_inputs():
    return []
