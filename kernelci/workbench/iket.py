"""CuTe DSL's ranges as marks of a trace, in a candidate that traces.

A kernel names its regions by the ranges of the tracer that comes with CuTe DSL (cutlass.cute.experimental.iket), which
its compiler drops unless it is asked for them. In a trace build each range also becomes marks of our own, as inline
PTX; the tracer itself stays off.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from kernelci.tracing import ptx
from kernelci.tracing.prelude import Tracing
from kernelci.tracing.records import REGIONS

_CLOBBERS = "~{memory}"  # loads and stores stay on their side of a mark


class Ranges:
    """Numbers of ranges, and which of them are open where a kernel is being compiled."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing
        self._names = list(tracing.regions)
        self._open: list[str] = []
        self._is_new = False

    def number(self, name: str) -> int:
        """The region's number; names that the card lacks follow. Raises ValueError beyond the last one."""
        if name not in self._names:
            self._names.append(name)
        if len(self._names) > REGIONS:
            raise ValueError(f"a trace has {REGIONS} regions at most")
        return self._names.index(name)

    def pushing(self, push: Callable[..., Any]) -> Callable[..., Any]:
        """iket.range_push that marks."""

        def pushed(event_name: str, payload: Any = None, **place: Any) -> Any:
            found = push(event_name, payload, **place)
            self._open.append(event_name)
            self._mark(event_name, is_end=False)
            return found

        return pushed

    def popping(self, pop: Callable[..., Any]) -> Callable[..., Any]:
        """iket.range_pop that marks. Raises ValueError where nothing is open."""

        def popped(**place: Any) -> Any:
            if not self._open:
                raise ValueError("range_pop() without a range_push() before it")
            self._mark(self._open.pop(), is_end=True)
            return pop(**place)

        return popped

    def starting(self, start: Callable[..., Any]) -> Callable[..., Any]:
        """iket.range_start that marks."""

        def started(event_name: str, payload: Any = None, **place: Any) -> Any:
            token = start(event_name, payload, **place)
            self._mark(event_name, is_end=False)
            return token

        return started

    def ending(self, end: Callable[..., Any]) -> Callable[..., Any]:
        """iket.range_end that marks, but for a token that stands for no range."""

        def ended(token: Any, payload: Any = None, **place: Any) -> Any:
            from cutlass.cutlass_dsl import Boolean, if_generate

            name = token._event_name
            if_generate(Boolean(token._is_none_val) == 0, lambda: self._mark(name, is_end=True))
            return end(token, payload, **place)

        return ended

    def opening(self, generate: Callable[..., Any]) -> Callable[..., Any]:
        """A DSL's method that makes a kernel's function, whose arguments come next."""

        def opened(dsl: Any, *args: Any, **kwargs: Any) -> Any:
            found = generate(dsl, *args, **kwargs)
            self._is_new = True
            return found

        return opened

    def entering(self, generate: Callable[..., Any]) -> Callable[..., Any]:
        """A DSL's method that makes the arguments of a function, whose body comes next."""

        def entered(dsl: Any, *args: Any, **kwargs: Any) -> Any:
            found = generate(dsl, *args, **kwargs)
            if self._is_new:
                self._is_new = False
                self._open.clear()
                _emit(ptx.begin(self._tracing.address))
            return found

        return entered

    def leaving(self, generate: Callable[..., Any]) -> Callable[..., Any]:
        """A DSL's method that ends a kernel's function."""

        def left(dsl: Any, *args: Any, **kwargs: Any) -> Any:
            _emit(ptx.end())
            return generate(dsl, *args, **kwargs)

        return left

    def _mark(self, name: str, *, is_end: bool) -> None:
        _emit(ptx.mark(self.number(name), is_end))


@contextlib.contextmanager
def traced(tracing: Tracing) -> Iterator[None]:
    """Under it kernels are compiled with marks; what is compiled is good for this process alone."""
    from cutlass.base_dsl.dsl import BaseDSL
    from cutlass.cute.experimental import iket
    from cutlass.cutlass_dsl import cutlass

    ranges = Ranges(tracing)
    functions = {
        "range_push": ranges.pushing(iket.range_push),
        "range_pop": ranges.popping(iket.range_pop),
        "range_start": ranges.starting(iket.range_start),
        "range_end": ranges.ending(iket.range_end),
    }
    with contextlib.ExitStack() as stack:
        for name, function in functions.items():
            stack.enter_context(mock.patch.object(iket, name, function))
        for kind in (cutlass.CuTeDSL, cutlass.CuteExperimentalDSL):
            for name, around in (("generate_func_op", ranges.opening), ("generate_func_ret_op", ranges.leaving)):
                stack.enter_context(mock.patch.object(kind, name, around(getattr(kind, name))))
        arguments = ranges.entering(BaseDSL.generate_execution_arguments)
        stack.enter_context(mock.patch.object(BaseDSL, "generate_execution_arguments", arguments))
        yield


def _emit(text: str) -> None:
    """Put PTX where the kernel is being compiled."""
    from cutlass._mlir.dialects import llvm

    llvm.inline_asm(
        None, [], text, _CLOBBERS, has_side_effects=True, is_align_stack=False, asm_dialect=llvm.AsmDialect.AD_ATT
    )
