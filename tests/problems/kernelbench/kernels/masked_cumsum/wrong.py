from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, mask):
        return x.cumsum(1) * mask
