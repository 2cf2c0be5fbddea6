"""Compiling kernels without a GPU: in forked processes, several at once, kept by content.

A compiled kernel is found again by the hash of all that could change it: the kernel's own files, the DSL's versions,
the target, the cases' arguments, and kernelci's version.
"""

import contextlib
import hashlib
import math
import os
import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

import kernelci
from kernelci import backends, whole
from kernelci.catalog import Kernel
from kernelci.config import Config, cache_folder
from kernelci.errors import Stop
from kernelci.problems.definitions import STUB
from kernelci.reference import Case, Reference
from kernelci.workbench import cubin
from kernelci.workbench.arena import row_major
from kernelci.workbench.device import versions
from kernelci.workbench.draws import Sketch
from kernelci.workbench.process import Ended, Zygote
from kernelci.workbench.protocol import (
    Build,
    Built,
    BuiltKernel,
    Call,
    DeadlinePassed,
    Launch,
    Raised,
    Refused,
    Source,
    TensorPlace,
    Value,
)

Made = TypeVar("Made")
BUILT_BY_TORCH = "torch builds or calls it by itself, where it runs"
LAUNCHES_S = 10.0
FORM = 5  # of what is kept: another number makes everything anew


class Compiled(Struct, frozen=True):
    """One compiled kernel with what its cubin says; `files` holds its dumps by extension, SASS included."""

    kernel: BuiltKernel
    resources: tuple[cubin.KernelResources, ...]
    files: dict[str, bytes]


class Compilation(Struct, frozen=True):
    """What compiling one kernel for one target gave: builds and notes, or a stop."""

    target: str
    builds: tuple[Compiled, ...] = ()
    notes: tuple[str, ...] = ()
    stop: Raised | None = None
    cached: bool = False
    duration_s: float = 0.0
    launches: tuple[Launch, ...] = ()
    """Of every case, as far as they are known without compiling it."""

    def symbols(self) -> frozenset[str]:
        """The names of all kernels in what was compiled."""
        named = {build.kernel.symbol for build in self.builds}
        return frozenset(named | {kernel.symbol for build in self.builds for kernel in build.resources})

    def raise_stop(self) -> None:
        """Raise the stop, if there is one, as an exception of the rung."""
        if self.stop is not None:
            raised = self.stop
            raise Stop(raised.reason, raised.message, file=raised.file, line=raised.line, log=raised.log)


class Builder:
    """Compiles in the background; each side and backend has a zygote of its own, started when first needed.

    Without `sass` nothing is disassembled, which takes longer than compiling a small kernel, and nothing new is kept.
    """

    def __init__(self, config: Config, sass: bool = True, hidden: Iterable[Path] = ()) -> None:
        self._config = config
        self._hidden = tuple(hidden)
        self._sass = sass
        self._cache = cache_folder(config)
        self._pool = ThreadPoolExecutor(config.jobs or os.cpu_count() or 1, thread_name_prefix="compile")
        self._zygotes: dict[tuple[str, str], Zygote] = {}
        self._lock = threading.Lock()
        self._running: set[Future[Any]] = set()

    def submit(
        self, kernel: Kernel, reference: Reference, target: str, all_configs: bool, side: str = "head"
    ) -> "Future[Compilation]":
        """Compile a kernel for a target in the background. Raises ReferenceFailed."""
        if not backends.intercepts(backends.get(kernel.backend)):
            found: Future[Compilation] = Future()
            found.set_result(Compilation(target, stop=Raised("built-by-torch", BUILT_BY_TORCH)))
            return found
        cases = reference.cases()
        message = _message(kernel, reference, target, cases if all_configs else representative(cases), all_configs)
        message = msgspec.structs.replace(message, sizes=tuple(call_of(reference, case) for case in cases))
        return self._begun(self._pool.submit(self._compile, kernel, message, side))

    def fill_caches(
        self, kernel: Kernel, reference: Reference, target: str, side: str = "head"
    ) -> "tuple[Future[bytes], ...]":
        """Compile every case in the background, a process per dtype, for the DSL's own cache.

        A candidate that finds its launches there needs not compile them. Empty where compiling fails: the compile rung
        tells why.
        """
        if backends.get(kernel.backend).REUSES_CACHE is False:
            return ()
        groups: dict[str, list[Case]] = {}
        for case in reference.cases():
            groups.setdefault(str(dict(case.values).get("dtype", "")), []).append(case)
        messages = [_message(kernel, reference, target, tuple(cases), False) for cases in groups.values()]
        keeping = [msgspec.structs.replace(message, keep_cache=True) for message in messages]
        return tuple(self._begun(self._pool.submit(self._cache_of, kernel, message, side)) for message in keeping)

    def _begun(self, future: "Future[Made]") -> "Future[Made]":
        self._running.add(future)
        future.add_done_callback(self._running.discard)
        return future

    def settle(self) -> None:
        """Wait until nothing is being compiled; faults are told elsewhere."""
        wait(list(self._running))

    def _cache_of(self, kernel: Kernel, message: Build, side: str) -> bytes:
        path = self._cache / "jit" / _key(kernel, message)
        with contextlib.suppress(OSError):
            return path.read_bytes()
        candidate = self._zygote(message.backend, side).fork(memory_bytes=self._config.memory_bytes)
        try:
            answer = candidate.ask(message, self._config.compile_timeout_s)
        except (DeadlinePassed, Refused, Ended):
            return b""
        finally:
            candidate.close()
        if not isinstance(answer, Built):
            return b""
        whole.keep(path, answer.cache)
        return answer.cache

    def _compile(self, kernel: Kernel, message: Build, side: str) -> Compilation:
        path = self._cache / "compiled" / _key(kernel, message)
        kept = _kept(path)
        if kept is not None:
            return msgspec.structs.replace(kept, cached=True)
        made = self._fresh(message, side)
        if made.stop is None and self._sass:
            whole.keep(path, msgspec.msgpack.encode(made))
        return made

    def _fresh(self, message: Build, side: str) -> Compilation:
        candidate = self._zygote(message.backend, side).fork(memory_bytes=self._config.memory_bytes)
        began = time.monotonic()
        try:
            answer = candidate.ask(msgspec.structs.replace(message, sizes=()), self._config.compile_timeout_s)
        except DeadlinePassed:
            answer = Raised("compile-timeout", f"still compiling after {self._config.compile_timeout_s:g} s")
        except Refused as error:
            answer = Raised("refused", str(error))
        except Ended as end:
            answer = Raised("compiler-abort", f"the compiler process ended with {end}", log=candidate.log())
        finally:
            candidate.close()
        seconds = round(time.monotonic() - began, 3)
        if isinstance(answer, Raised):
            reason = "compile-error" if answer.reason == "raised" else answer.reason
            return Compilation(message.target, stop=msgspec.structs.replace(answer, reason=reason))
        if not isinstance(answer, Built):
            return Compilation(message.target, stop=Raised("refused", f"answered with {type(answer).__name__}"))
        if not answer.kernels:
            return Compilation(message.target, stop=Raised("nothing-compiled", "the entry launched no kernel"))
        builds = tuple(_described(kernel, self._sass) for kernel in answer.kernels)
        told = self._launches(message, side)
        return Compilation(message.target, builds, answer.notes, duration_s=seconds, launches=told)

    def _launches(self, message: Build, side: str) -> tuple[Launch, ...]:
        """The launches of all cases, by a process of its own: host code that ends it there or does not end has done
        nothing wrong yet, and is met again where the cases run."""
        if not message.sizes or not hasattr(backends.get(message.backend), "launches"):
            return ()
        candidate = self._zygote(message.backend, side).fork(memory_bytes=self._config.memory_bytes)
        try:
            answer = candidate.ask(msgspec.structs.replace(message, cases=()), LAUNCHES_S)
        except (DeadlinePassed, Refused, Ended):
            return ()
        finally:
            candidate.close()
        return answer.launches if isinstance(answer, Built) else ()

    def warm(self, backend: str, side: str = "head") -> Zygote:
        """Start the zygote of a backend, if it has not been started; does not wait for its imports."""
        with self._lock:
            if (side, backend) not in self._zygotes:
                environment = backends.get(backend).environment
                self._zygotes[side, backend] = Zygote("compile", (backend,), environment, self._hidden)
            return self._zygotes[side, backend]

    def _zygote(self, backend: str, side: str) -> Zygote:
        zygote = self.warm(backend, side)
        missing = zygote.wait_ready()
        if backend in missing:
            raise Stop("missing-dependency", f"{backend} can't be imported: {missing[backend]}")
        return zygote

    def close(self) -> None:
        """End the zygotes, and with them what is being compiled; drop what has not begun."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        for zygote in self._zygotes.values():
            zygote.close()
        self._pool.shutdown(wait=True)


def representative(cases: Iterable[Case]) -> tuple[Case, ...]:
    """For each dtype the first bench case, or where there is none the largest check case."""
    chosen: dict[str, Case] = {}
    for case in sorted(cases, key=lambda case: (case.kind != "bench", case.kind == "check" and -_size(case))):
        chosen.setdefault(str(dict(case.values).get("dtype", "")), case)
    return tuple(chosen.values())


def _size(case: Case) -> int:
    return math.prod(value for _, value in case.values if type(value) is int)


def call_of(reference: Reference, case: Case) -> Call:
    """The call of a case without data: places that are shapes only."""
    inputs = reference.inputs(case, Sketch())
    outputs = reference.outputs(case, inputs)
    arguments: dict[str, Value] = {
        name: _place(tuple(value.shape), str(value.dtype)) if hasattr(value, "dtype") else value
        for name, value in inputs.items()
    }
    own = {name: spec for name, spec in outputs.items() if not spec.alias}  # the others are inputs already
    return Call(dict(case.values), arguments, {name: _place(spec.shape, spec.dtype) for name, spec in own.items()})


def _place(shape: tuple[int, ...], dtype: str) -> TensorPlace:
    return TensorPlace(0, shape, row_major(shape), dtype.removeprefix("torch."))


def _message(kernel: Kernel, reference: Reference, target: str, cases: tuple[Case, ...], all_configs: bool) -> Build:
    assert kernel.card is not None
    calls = tuple(call_of(reference, case) for case in cases)
    return Build(source_of(kernel), kernel.card.entry, kernel.card.backend, target, calls, all_configs)


def source_of(kernel: Kernel) -> Source:
    """The kernel's own files, as they travel to a candidate."""
    if kernel.generated:
        return Source(kernel.reference, STUB, kernel.generated)
    files = {path.name: path.read_bytes() for path in kernel.sources()}
    return Source(kernel.reference, kernel.path.name, files)


def _described(kernel: BuiltKernel, sass: bool = True) -> Compiled:
    """Add what the cubin says, and with `sass` its machine code in words.

    A cubin that NVIDIA's tools can't read leaves its dumps without SASS.
    """
    files = dict(kernel.files)
    binary = files.get("cubin")
    if not binary:
        return Compiled(kernel, (), files)
    try:
        found = tuple(cubin.resources(binary))
        if sass:
            files["sass"] = cubin.disassemble(binary).encode()
    except (cubin.BrokenCubin, cubin.ToolMissing) as error:
        files["sass"] = f"// no disassembly: {error}\n".encode()
        found = ()
    return Compiled(msgspec.structs.replace(kernel, files={}), found, files)


def _key(kernel: Kernel, message: Build) -> str:
    installed = versions(backends.get(message.backend).DISTRIBUTIONS)
    digest = hashlib.sha256(f"{FORM} {kernelci.__version__} {sorted(installed.items())} {kernel.sha256()}".encode())
    digest.update(msgspec.msgpack.encode(message))
    return digest.hexdigest()


def _kept(path: Path) -> Compilation | None:
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=Compilation)
    except (OSError, msgspec.MsgspecError):
        return None
