import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        kept = torch.log_softmax(predictions, 1).gather(1, targets[:, None])
        return -kept.mean()
