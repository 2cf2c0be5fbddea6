import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size, step, padding):
        super().__init__()
        self.pool = nn.MaxPool2d(size, step, padding)

    def forward(self, x):
        size, step = self.pool.kernel_size, self.pool.stride
        x = F.pad(x, [self.pool.padding] * 4)
        return x.unfold(2, size, step).unfold(3, size, step).amax((-1, -2))
