"""The Huber loss."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, predictions, targets):
        return F.smooth_l1_loss(predictions, targets)


def get_inputs():
    return [torch.randn(40, 20), torch.randn(40, 20)]


def get_init_inputs():
    return []
