import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels, size):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels, 1, size, size))

    def forward(self, x):
        windows = x.unfold(2, 3, 1).unfold(3, 3, 1)
        return (windows * self.weight[:, 0, None, None]).sum((-1, -2))
