import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, eps: float = 1e-5):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt((x * x).mean(1, keepdim=True) + self.eps)
