from torch import nn


class ModelNew(nn.Module):
    def __init__(self, dim: int = 1):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        x = x - x.amax(self.dim, keepdim=True)
        return x - x.exp().sum(self.dim, keepdim=True).log()
