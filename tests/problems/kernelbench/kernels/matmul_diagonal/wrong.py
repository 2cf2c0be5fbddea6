from torch import nn


class ModelNew(nn.Module):
    def forward(self, A, B):
        return B * A[0]
