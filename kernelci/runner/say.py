"""What the machine's processes log: one line each, on standard error, where the journal dates them."""

import sys

from kernelci import inert


def say(text: str) -> None:
    """Log a line. Text of jobs may be in it, so it is made harmless."""
    print(f"kernelci: {inert.line(text, 600)}", file=sys.stderr, flush=True)
