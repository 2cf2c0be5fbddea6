"""What `explain` prints: a reason or an error, its meaning, and the next step."""

import difflib
import textwrap

from kernelci.errors import ConfigError
from kernelci.reasons import REASONS


def text(code: str | None) -> str:
    """The paragraph of a code, or the list of all. Raises ConfigError for an unknown one, naming its neighbours."""
    if code is None:
        return "\n".join(
            f"{name:<20} {reason.outcome or 'error'!s:<8} {reason.title}" for name, reason in REASONS.items()
        )
    if code not in REASONS:
        near = difflib.get_close_matches(code, REASONS, n=3)
        hint = f"did you mean {', '.join(near)}?" if near else "`kernelci explain` lists all"
        raise ConfigError(f"no reason or error is named {code!r}", hint=hint)
    reason = REASONS[code]
    head = f"{code}: {reason.title} ({reason.outcome or 'error of the tool'})"
    return "\n\n".join([head, textwrap.fill(reason.meaning, 100), textwrap.fill(f"Next: {reason.next_step}", 100)])
