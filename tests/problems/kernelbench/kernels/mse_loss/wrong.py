from torch import nn


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        return (predictions - targets).abs().mean()
