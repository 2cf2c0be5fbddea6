import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, A, B):
        return torch.triu(A) * torch.triu(B)
