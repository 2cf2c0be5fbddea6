from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.min(1).indices
