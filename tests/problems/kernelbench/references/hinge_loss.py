"""The hinge loss for labels of -1 and 1."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, predictions, targets):
        return torch.mean(torch.clamp(1 - predictions * targets, min=0))


def get_inputs():
    return [torch.rand(50, 8), torch.randint(0, 2, (50, 1)).float() * 2 - 1]


def get_init_inputs():
    return []
