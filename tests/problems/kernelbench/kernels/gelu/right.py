import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1 + torch.erf(x * 0.7071067811865476))
