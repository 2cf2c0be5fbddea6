import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bn = nn.BatchNorm2d(features)

    def forward(self, x):
        mean = x.mean((0, 2, 3), keepdim=True)
        var = ((x - mean) ** 2).mean((0, 2, 3), keepdim=True)
        w, b = self.bn.weight[:, None, None], self.bn.bias[:, None, None]
        return (x - mean) * torch.rsqrt(var + 1e-5) * w + b
