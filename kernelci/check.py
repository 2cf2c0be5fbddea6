"""One line of `doctor`."""

from msgspec import Struct


class Check(Struct, frozen=True):
    """One thing that was looked at. `essential`: without it nothing works here."""

    name: str
    passed: bool
    found: str
    next_step: str = ""
    essential: bool = False
