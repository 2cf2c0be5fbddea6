import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        n = x.shape[self.dim]
        return x @ torch.triu(torch.ones(n, n, device=x.device, dtype=x.dtype))
