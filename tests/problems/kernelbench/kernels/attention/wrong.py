from torch import nn


class ModelNew(nn.Module):
    def forward(self, Q, K, V):
        weights = (Q @ K.transpose(-1, -2)).softmax(-1)
        return weights @ V
