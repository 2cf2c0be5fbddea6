"""What holds for a row of times: its floors, whether SLOWER blocks, and who has waived it until when."""

import datetime
from collections.abc import Iterator
from fnmatch import fnmatchcase

from msgspec import Struct

from kernelci.config import GateOptions, GateRule, Waiver


class Rule(Struct, frozen=True):
    """The gate for one row. Floors are fractions."""

    floor: float
    end_to_end_floor: float
    blocks: bool
    waiver: Waiver | None = None
    """The one that holds today."""
    expired: tuple[Waiver, ...] = ()
    """Those that would have held."""

    @property
    def stops(self) -> bool:
        """Whether a SLOWER here fails its kernel."""
        return self.blocks and self.waiver is None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of a SLOWER here has to know."""
        if self.waiver is not None:
            return (f"waived by {self.waiver.owner} until {self.waiver.expires}: {self.waiver.reason}",)
        said = (f"waiver of {old.owner} expired on {old.expires}: {old.reason}" for old in self.expired)
        return (*said, *(() if self.blocks else ("the gate's rules let it pass",)))


class Gate(Struct, frozen=True):
    """The gate's options on a day."""

    options: GateOptions
    today: datetime.date

    @classmethod
    def now(cls, options: GateOptions) -> "Gate":
        """The gate as of today, by UTC: everyone's waivers end at the same time."""
        return cls(options, datetime.datetime.now(datetime.UTC).date())

    def of(self, kernel: str, case: str) -> Rule:
        """What holds for a kernel's case. Of rules the later one wins, of waivers the one that lasts longest."""
        floor, end_to_end, blocks = self.options.floor, self.options.end_to_end_floor, self.options.blocks
        for rule in self._rules(kernel, case):
            floor = floor if rule.floor is None else rule.floor
            end_to_end = end_to_end if rule.end_to_end_floor is None else rule.end_to_end_floor
            blocks = blocks if rule.blocks is None else rule.blocks
        fitting = [waiver for waiver in self.options.waiver if _fits(waiver, kernel, case)]
        holding = [waiver for waiver in fitting if self.today <= waiver.expires]
        expired = tuple(waiver for waiver in fitting if waiver.expires < self.today)
        return Rule(floor, end_to_end, blocks, max(holding, key=lambda each: each.expires, default=None), expired)

    def _rules(self, kernel: str, case: str) -> Iterator[GateRule]:
        return (rule for rule in self.options.rule if _fits(rule, kernel, case))


def _fits(entry: GateRule | Waiver, kernel: str, case: str) -> bool:
    return fnmatchcase(kernel, entry.kernel) and fnmatchcase(case, entry.case)
