import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        return -torch.log_softmax(predictions, 1)[:, 0].mean()
