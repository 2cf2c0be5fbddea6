import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, inputs, outputs, size):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, size)

    def forward(self, x):
        return F.conv2d(x.flip(-1), self.conv.weight, self.conv.bias)
