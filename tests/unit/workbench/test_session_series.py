"""Series in a real candidate process: where their calls work, what a go takes, and what is no answer to it."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from kernelci.errors import Stop
from kernelci.workbench.protocol import Call, Series, TensorPlace
from kernelci.workbench.session import Session

MakeSession = Callable[..., Session]
SLOT_BYTES = 8192
ADDS = "import torch\ndef f(x, y):\n    torch.add(x, 1, out=y)\n"


def _place(slot: int, offset: int) -> TensorPlace:
    return TensorPlace(slot * SLOT_BYTES + offset, (4,), (1,), "float32")


def _series(slots: tuple[int, ...] = (0, 1, 2), number: int = 0, mode: str = "eager") -> Series:
    call = Call({}, {"x": _place(0, 0)}, {"y": _place(0, 4096)})
    return Series(number, call, slots, SLOT_BYTES, mode)  # type: ignore[arg-type]


def _went_wrong(session: Session, number: int = 0) -> Stop:
    with pytest.raises(Stop) as caught:
        session.go(number)
    return caught.value


@pytest.mark.parametrize("slots", [(0, 1, 2), (2,), (1, 0)])
@pytest.mark.parametrize("mode", ["eager", "each"])
def test_a_series_works_on_its_slots(session: MakeSession, slots: tuple[int, ...], mode: str) -> None:
    made = session(ADDS)
    made.prepare(_series(slots, mode=mode))
    for slot in range(3):
        made.arena.view(_place(slot, 0)).fill_(slot)
        made.arena.view(_place(slot, 4096)).fill_(-7)
    made.go(0)
    left = [float(made.arena.view(_place(slot, 4096))[0]) for slot in range(3)]
    assert [slot + 1 if slot in slots else -7 for slot in range(3)] == left


def test_a_go_takes_as_long_as_its_calls_and_has_no_events_here(session: MakeSession) -> None:
    made = session("import time\ndef f(x, y):\n    time.sleep(0.05)\n")
    made.prepare(_series())
    wall, device = made.go(0)
    assert (True, 0.0) == (wall >= 150e6, device)


def test_several_series_are_ready_at_once(session: MakeSession) -> None:
    made = session(ADDS)
    for number, slots in enumerate(((0,), (1,))):
        made.prepare(_series(slots, number))
    made.arena.view(_place(0, 4096)).fill_(-7)
    made.go(1)
    assert -7 == float(made.arena.view(_place(0, 4096))[0])


def test_what_a_warm_up_raises_is_a_verdict(session: MakeSession) -> None:
    with pytest.raises(Stop) as caught:
        session("def f(x, y):\n    raise ValueError('no')\n").prepare(_series())
    assert ("raised", "ValueError: no") == (caught.value.reason, caught.value.message)


def test_what_a_timed_call_raises_is_a_verdict(session: MakeSession) -> None:
    made = session("n = 0\ndef f(x, y):\n    global n\n    n += 1\n    assert n < 5, 'fifth'\n")
    made.prepare(_series())
    assert "fifth" in _went_wrong(made).message


def test_a_series_that_is_not_ready(session: MakeSession) -> None:
    assert "raised" == _went_wrong(session(ADDS)).reason


def test_a_series_that_was_forgotten(session: MakeSession) -> None:
    made = session(ADDS)
    made.prepare(_series())
    made.forget()
    assert "raised" == _went_wrong(made).reason


def test_a_process_goes_on_after_forgetting(session: MakeSession) -> None:
    made = session(ADDS)
    for _ in range(2):
        made.prepare(_series())
        made.go(0)
        made.forget()
    assert 1 == made.life


def test_prepare_tells_the_autotuners_choice(session: MakeSession) -> None:
    made = session(
        """
        import triton
        import triton.language as tl
        @triton.autotune(configs=[triton.Config({"B": 4}), triton.Config({"B": 8})], key=[])
        @triton.jit
        def add(x, y, B: tl.constexpr):
            at = tl.arange(0, B)
            tl.store(y + at, tl.load(x + at, mask=at < 4) + 1, mask=at < 4)
        def f(x, y):
            add[(1,)](x, y)
        """
    )
    pinned = replace(_series(), call=replace(_series().call, config=1))
    free, second = made.prepare(_series()), made.prepare(pinned)
    assert ([0, 1], [True, True]) == (
        [free.config, second.config], [f"B: {size}" in one.choice for size, one in ((4, free), (8, second))],
    )  # fmt: skip


def test_no_autotuner_makes_no_choice(session: MakeSession) -> None:
    assert -1 == session(ADDS).prepare(_series()).config


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"type": "Prepared"}, "refused"),
        ({"type": "Finished", "device_ns": -1.0}, "refused"),
        ({"type": "Finished", "device_ns": float("nan")}, "refused"),
        ({"type": "Finished", "device_ns": 1e300}, "refused"),
    ],
)
def test_what_a_go_may_not_be_answered(session: MakeSession, said: dict[str, object], reason: str) -> None:
    made = session(
        f"""
        import os, msgspec
        nan = float("nan")
        n = 0
        def f(x, y):
            global n
            n += 1
            if n == 3:
                data = msgspec.msgpack.encode({said})
                for name in os.listdir("/proc/self/fd"):
                    try:
                        if os.readlink(f"/proc/self/fd/{{name}}").startswith("socket"):
                            os.write(int(name), len(data).to_bytes(4, "big") + data)
                    except OSError:
                        pass
        """
    )
    made.prepare(_series())
    assert reason == _went_wrong(made).reason
