"""What the compiler made, taken apart: machine code by classes of opcodes, base against head, and why one is slower.

Pure, but for `specimen`, which reads and writes files. Works on text of nvdisasm or cuobjdump; needs no GPU and no DSL.
"""
