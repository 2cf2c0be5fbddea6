import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        d = (predictions - targets).reshape(-1)
        return torch.dot(d, d) / d.numel()
