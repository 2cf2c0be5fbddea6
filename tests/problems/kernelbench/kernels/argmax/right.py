from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.max(1).indices
