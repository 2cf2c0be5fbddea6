"""CI for GPU kernels. See README.md; references import their vocabulary from `kernelci.reference`."""

__version__ = "0.1.0"
