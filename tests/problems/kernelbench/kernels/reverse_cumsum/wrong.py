from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.cumsum(1).flip(1)
