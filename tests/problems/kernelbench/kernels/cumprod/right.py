from torch import nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        y = x.clone()
        for i in range(1, x.shape[self.dim]):
            y[:, i] *= y[:, i - 1]
        return y
