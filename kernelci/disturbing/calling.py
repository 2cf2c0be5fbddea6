"""The untrusted side of a disturbance: the entry of a kernel, called while something is changed around it."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

Made = list[str]
"""What was changed, an entry for each launch or compilation; empty: this call was like any other."""


class Undisturbed(Exception):
    """Nothing was there to change."""


def kernel(path: Path) -> ModuleType:
    """The kernel's own file, imported as it always is."""
    from kernelci.compiling.loading import load

    return load(path)


def disturbed(module: ModuleType, entry: str, name: str) -> Callable[..., Any]:
    """The entry of a kernel under the disturbance of that name; raises Undisturbed where none was made."""
    inner, ever = getattr(module, entry), Made()

    @functools.wraps(inner)
    def called(*args: Any, **kwargs: Any) -> Any:
        with contextlib.ExitStack() as stack:
            made = _begun(stack, name)
            result = inner(*args, **kwargs)
        ever.extend(made[:1])
        if not (made or (ever and name in _ONCE)):
            raise Undisturbed("the call has nothing that it could change")
        return result

    return called


def _begun(stack: contextlib.ExitStack, name: str) -> Made:
    """The disturbance, begun. That it can't be is no fault of the kernel's. Raises Undisturbed."""
    try:
        return stack.enter_context(_MAKERS[name]())
    except Exception as error:
        raise Undisturbed(f"{name} can't be made here: {type(error).__name__}: {error}") from error


@contextlib.contextmanager
def _delays() -> Iterator[Made]:
    from kernelci.disturbing import compilers

    with contextlib.ExitStack() as stack:
        yield compilers.delayed(stack)


@contextlib.contextmanager
def _unfused() -> Iterator[Made]:
    from kernelci.disturbing import fusing

    with contextlib.ExitStack() as stack:
        yield fusing.unfused(stack)


def _fill() -> contextlib.AbstractContextManager[Made]:
    from kernelci.disturbing import interpreter

    return interpreter.fill()


def _order() -> contextlib.AbstractContextManager[Made]:
    from kernelci.disturbing import interpreter

    return interpreter.order()


def _shared() -> contextlib.AbstractContextManager[Made]:
    from kernelci.disturbing import shared

    return shared.dirty()


def _busy() -> contextlib.AbstractContextManager[Made]:
    from kernelci.disturbing import shared

    return shared.busy()


def _launched(option: str, change: Callable[[Any], Any]) -> Callable[[], contextlib.AbstractContextManager[Made]]:
    def make() -> contextlib.AbstractContextManager[Made]:
        from kernelci.disturbing import launching

        return launching.overridden(option, change)

    return make


MOST_WARPS = 16
_MAKERS: dict[str, Callable[[], contextlib.AbstractContextManager[Made]]] = {
    "fill": _fill,
    "order": _order,
    "shared": _shared,
    "load": _busy,
    "delays": _delays,
    "fusion": _unfused,
    "overflow": _launched("debug", lambda debug: True),
    "warps-more": _launched("num_warps", lambda warps: min(2 * warps, MOST_WARPS)),
    "warps-fewer": _launched("num_warps", lambda warps: max(warps // 2, 1)),
    "stages-one": _launched("num_stages", lambda stages: 1),
    "stages-more": _launched("num_stages", lambda stages: stages + 1),
}
_ONCE = ("delays", "fusion")  # what was compiled so stays so: later calls of the same kernel compile nothing
