from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x * (x * x).sum(1, keepdim=True).rsqrt()
