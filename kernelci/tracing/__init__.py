"""Traces of what warps did inside a kernel: from a device buffer, or from a DSL's own tracer, to one form.

`records` reads the buffer that kernelci_trace.cuh fills, `clocks` brings the multiprocessors' clocks together,
`regions` makes tracks of it, `table` sums them up, `chrome` writes them for chrome://tracing and Perfetto.
"""
