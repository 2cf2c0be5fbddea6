import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        d = (predictions - targets).abs()
        return torch.where(d < 1, 0.5 * d * d, d - 0.5).mean()
