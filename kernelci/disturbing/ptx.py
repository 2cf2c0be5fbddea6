"""Delays in PTX: some warps sleep at the start of a kernel and after each of its barriers.

A missing barrier works as a rule because warps keep step; some ten microseconds between them take that away.
"""

import re

NANOSECONDS = 8000
# A barrier that stands alone on its line, for all threads of a block or some; not one in a macro's braces.
_BARRIER = re.compile(
    r"^[ \t]*(?:@!?%\w+[ \t]+)?(?:bar|barrier)(?:\.cta)?\.(?:sync|red)(?:\.\w+)*[ \t][^;{}\n]*;[^\n]*$",
    re.MULTILINE,
)
_ENTRY = re.compile(r"\.entry\s+[\w$]+\s*\([^)]*\)[^{;]*\{", re.DOTALL)
# One of four sleeps: which ones differs from place to place, and from block to block.
_DELAY = """
{{
.reg .b32 %kci_a, %kci_b;
.reg .pred %kci_p;
mov.u32 %kci_a, %tid.x;
shr.u32 %kci_a, %kci_a, 5;
mov.u32 %kci_b, %tid.y;
add.u32 %kci_a, %kci_a, %kci_b;
mov.u32 %kci_b, %ctaid.x;
add.u32 %kci_a, %kci_a, %kci_b;
add.u32 %kci_a, %kci_a, {place};
and.b32 %kci_a, %kci_a, 3;
setp.eq.u32 %kci_p, %kci_a, 0;
@%kci_p nanosleep.u32 {nanoseconds};
}}"""


def delayed(ptx: str) -> tuple[str, int]:
    """The PTX with delays, and how many there are. Every target of it must have nanosleep: sm_70 and later."""
    places = 0

    def with_delay(found: re.Match[str]) -> str:
        nonlocal places
        places += 1
        return found[0] + _DELAY.format(place=places, nanoseconds=NANOSECONDS)

    for pattern in (_ENTRY, _BARRIER):
        ptx = pattern.sub(with_delay, ptx)
    return ptx, places
