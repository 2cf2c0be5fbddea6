import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, groups):
        super().__init__()
        self.groups = groups
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))

    def forward(self, x):
        g = x.view(x.shape[0], self.groups, -1)
        g = (g - g.mean(2, keepdim=True)) * torch.rsqrt(g.var(2, keepdim=True) + 1e-5)
        return g.view(x.shape) * self.weight[:, None, None] + self.bias[:, None, None]
