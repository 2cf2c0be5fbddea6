"""What torch.compile takes for baselines, compiled beside the earlier rungs and kept.

What was compiled is kept between runs by its content: only a baseline's own process, which no kernel shares, writes
it, and only such a process reads it. Choices between configurations are kept of a process that was timed, and so alone
on the GPU. No time is kept.
"""

import contextlib
import hashlib
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

import msgspec
import torch
from msgspec import Struct

import kernelci
from kernelci import whole
from kernelci.errors import Stop
from kernelci.reference import Case, Reference
from kernelci.workbench import leftovers, slots
from kernelci.workbench.arena import Arena
from kernelci.workbench.cuda_memory import CudaFailed
from kernelci.workbench.session import Session

FORM = 3  # of what is kept: another number makes everything anew
COMPILE_S = 300.0  # torch.compile's first call
ROOM = 8  # so many times a case's tensors must be free: kernels that climb meanwhile need memory too
THREADS = 2  # references that are compiled at once, beside the kernels
Opened = Callable[[Arena], Session]
Make = Callable[[tuple[str, ...], bytes], bytes]
"""Compiles more cases in a process that is loaded with what there is; all of it."""


class Kept(Struct, frozen=True, forbid_unknown_fields=True):
    """What is kept of a reference: the cases that were compiled, by id, and what that left."""

    cases: tuple[str, ...] = ()
    archive: bytes = b""


class Ahead:
    """What is compiled beside the earlier rungs, by a name that says for whom; `folder` is where it is kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="ahead")
        self._caches: dict[str, Future[bytes]] = {}
        self._asked: dict[str, tuple[str, tuple[str, ...]]] = {}  # key and cases by name
        self._others: list[Future[None]] = []

    def compile(self, name: str, key: str, cases: Sequence[str], make: Make) -> None:
        """Have what is kept under this key, and make what it lacks of the cases, in the background; once for each
        name."""
        if name not in self._caches:
            self._asked[name] = key, tuple(cases)
            self._caches[name] = self._threads.submit(self._had, key, tuple(cases), make)

    def also(self, what: Callable[[], None]) -> None:
        """Do this in the background too, when what was asked for before has begun."""
        self._others.append(self._threads.submit(what))

    def _had(self, key: str, cases: tuple[str, ...], make: Make) -> bytes:
        kept = self._read(key)
        missing = tuple(case for case in cases if case not in kept.cases)
        if not missing:
            return kept.archive
        found = make(missing, kept.archive)
        if found:
            self._write(key, Kept((*kept.cases, *missing), found))
        return found or kept.archive

    def _read(self, key: str) -> Kept:
        try:
            return msgspec.msgpack.decode((self._folder / key).read_bytes(), type=Kept)
        except (OSError, msgspec.DecodeError):
            return Kept()

    def _write(self, key: str, kept: Kept) -> None:
        whole.keep(self._folder / key, msgspec.msgpack.encode(kept))

    def cache(self, name: str) -> tuple[bytes, ...]:
        """What a process of this name is loaded with: nothing where nothing was compiled."""
        future = self._caches.get(name)
        if future is None or future.cancelled() or future.exception() is not None or not future.result():
            return ()
        return (future.result(),)

    def keep(self, name: str, left: bytes) -> str:
        """Keep what a process of this name has in its cache after it was timed, where that is more than it was loaded
        with; says how much of it was compiled only then."""
        before = b"".join(self.cache(name))
        compiled = leftovers.code(left) - leftovers.code(before)
        if name in self._asked and (compiled or leftovers.choices(left) - leftovers.choices(before)):
            key, cases = self._asked[name]
            self._write(key, Kept(tuple(dict.fromkeys((*self._read(key).cases, *cases))), left))
            self._caches[name] = Future()
            self._caches[name].set_result(left)
        return f"files compiled only then: {len(compiled)}; " if compiled else ""

    def settle(self) -> None:
        """Wait until nothing is done any more; faults are met again where the baseline is timed."""
        wait(self._caches.values())
        wait(self._others)

    def close(self) -> None:
        """Drop what has not begun, and wait for what has: it ends with the zygote of its processes."""
        self._threads.shutdown(wait=True, cancel_futures=True)


def key_of(reference: Reference, gpu: str, installed: dict[str, str]) -> str:
    """Names all that could change what a case is compiled to: the reference's file, GPU, and versions."""
    digest = hashlib.sha256(f"{FORM} {kernelci.__version__} {gpu} {sorted(installed.items())}".encode())
    digest.update(reference.path.read_bytes())
    return digest.hexdigest()


def compiled(device: str, reference: Reference, cases: Sequence[Case], opened: Opened, loaded: bytes = b"") -> bytes:
    """What torch.compile has in its cache when it was called once on each of these cases, by a process that was
    loaded with what is there; without choices between configurations but those. Empty where memory is short."""
    layouts = [slots.layout(reference, case) for case in cases]
    size = max((layout.bytes(1) for layout in layouts), default=0)
    if not size or not _has_room(device, size):
        return b""
    try:
        arena = Arena(device, size)
    except CudaFailed:
        return b""
    try:
        return leftovers.without_choices(_called(arena, reference, cases, opened), leftovers.choices(loaded))
    except Stop:
        return b""
    finally:
        arena.close()


def _called(arena: Arena, reference: Reference, cases: Sequence[Case], opened: Opened) -> bytes:
    session = opened(arena)
    session.limits.call_s = max(session.limits.call_s, COMPILE_S)
    try:
        for case in cases:
            bank = slots.Bank(reference, case, arena, 1, secrets.token_hex(8))
            bank.deal()
            with contextlib.suppress(Stop):  # the others are compiled all the same
                session.call(bank.layout.call(case))
        return session.packed()
    finally:
        session.close()


def _has_room(device: str, size: int) -> bool:
    if device == "cpu":
        return True
    free, _ = torch.cuda.mem_get_info(device)
    return bool(ROOM * size <= free)
