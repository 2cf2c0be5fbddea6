from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(1, keepdim=True) - x.cumsum(1) + x
