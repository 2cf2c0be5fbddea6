"""Several draws tried together, layouts, in-place outputs, many repeats: what a kernel keeps, refuses or changes."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernelci.errors import Stop
from kernelci.reference import Reference, TensorSpec, check, load
from kernelci.workbench import session as sessions
from kernelci.workbench.batch import Places
from kernelci.workbench.drawn import VARIED, Drawn, make
from kernelci.workbench.judging import judge
from kernelci.workbench.oracle import Truth
from kernelci.workbench.session import Session
from kernelci.workbench.subject import MOVE_BYTES, MOVES, Subject
from kernelci.workbench.trial import BATCH_BYTES, Trial, digest, is_refusal, repeats, run_all, run_drawn

MakeSession = Callable[..., Session]
SOFTMAX = Path(__file__).resolve().parents[3] / "references" / "softmax.py"
CASE = check(rows=6, cols=33, dtype="float32")
RIGHT = "import torch\ndef f(x, y):\n    y.copy_(torch.softmax(x, -1))\n"
BY_SUM = """
import torch
kept = {}
def f(x, y):
    key = round(float(x.view(-1)[:8].sum()), 3)
    if key not in kept:
        kept[key] = torch.softmax(x, -1)
    y.copy_(kept[key])
"""
LAST_ANSWER = """
import torch
kept = {}
def f(x, y):
    if "x" not in kept or not torch.equal(kept["x"][:, 1:4], x[:, 1:4]):
        kept.update(x=x.clone(), y=torch.softmax(x, -1))
    y.copy_(kept["y"])
"""
FIRST_ANSWER = """
import torch
kept = []
def f(x, y):
    if not kept:
        kept.append(torch.softmax(x, -1))
    y.copy_(kept[0])
"""


@pytest.fixture(scope="module")
def softmax() -> Reference:
    """The repository's own reference."""
    return load(SOFTMAX)


def _try(session: Session, reference: Reference, *draws: str) -> dict[str, bool]:
    """Whether each draw's trial is right, both of its calls."""
    drawn = {draw: make(reference, CASE, draw, "s", "cpu") for draw in draws}
    found = run_all(session, drawn, "s")
    return {
        draw: isinstance(trial, Trial) and _is_right(reference, drawn[draw], trial) for draw, trial in found.items()
    }


def _is_right(reference: Reference, drawn: Drawn, trial: Trial) -> bool:
    answers = [trial.outputs, *([trial.again] if trial.again else [])]
    return all(one.passed for outputs in answers for one in judge(reference, drawn, outputs))


DRAWS = ("normal:0", "normal:1", "tail:0", f"{VARIED}+poked.x", f"{VARIED}+permuted.rows", f"{VARIED}+alone.rows")


@pytest.mark.parametrize("seed", ["s", "t", "u"])
def test_an_answer_kept_until_the_next_call_shows_among_many_draws(
    session: MakeSession, softmax: Reference, seed: str
) -> None:
    names = [*(f"normal:{number}" for number in range(12)), f"{VARIED}+swapped.x"]
    drawn = {name: make(softmax, CASE, name, seed, "cpu") for name in names}
    found = run_all(session(LAST_ANSWER), drawn, seed)[names[-1]]
    assert (Trial, False) == (type(found), isinstance(found, Trial) and found.repeated)


def test_an_honest_kernel_is_right_everywhere(session: MakeSession, softmax: Reference) -> None:
    assert dict.fromkeys(DRAWS, True) == _try(session(RIGHT), softmax, *DRAWS)


def test_an_answer_kept_by_a_fingerprint(session: MakeSession, softmax: Reference) -> None:
    assert False in _try(session(BY_SUM), softmax, VARIED, f"{VARIED}+poked.x").values()


def test_the_first_answer_for_ever(session: MakeSession, softmax: Reference) -> None:
    assert 1 >= sum(_try(session(FIRST_ANSWER), softmax, "normal:0", "normal:1", "tail:0").values())


def test_a_fault_ends_it(session: MakeSession, softmax: Reference) -> None:
    drawn = {draw: make(softmax, CASE, draw, "s", "cpu") for draw in DRAWS}
    found = run_all(session("def f(x, y):\n    raise ValueError('no')\n"), drawn, "s")
    assert ["raised"] == [one.reason for one in found.values() if isinstance(one, Stop)]


@pytest.mark.parametrize("layout", ["offset1", "offset3", "offset7", "strided", "transposed", "expanded", "padded"])
def test_layout(session: MakeSession, softmax: Reference, layout: str) -> None:
    seen = "def f(x, y):\n    import torch\n    assert x.data_ptr() % 4 == 0\n    y.copy_(torch.softmax(x, -1))\n"
    assert {f"{VARIED}+{layout}.x": True} == _try(session(seen), softmax, f"{VARIED}+{layout}.x")


@pytest.mark.parametrize(
    ("layout", "strides", "offset"),
    [("offset3", (33, 1), 12), ("strided", (66, 2), 0), ("transposed", (1, 6), 0), ("padded", (36, 1), 0)],
)
def test_layout_is_what_the_kernel_sees(
    session: MakeSession, softmax: Reference, layout: str, strides: tuple[int, int], offset: int
) -> None:
    text = f"def f(x, y):\n    assert (x.stride(), x.data_ptr() % 256) == ({strides}, {offset})\n    y.fill_(0)\n"
    run_drawn(session(text), make(softmax, CASE, f"{VARIED}+{layout}.x", "s", "cpu"))


def test_a_layout_refused(session: MakeSession, softmax: Reference) -> None:
    text = """
        def f(x, y):
            if not x.is_contiguous():
                raise ValueError("x must be contiguous")
    """
    draw = f"{VARIED}+transposed.x"
    found = run_all(session(text), {draw: make(softmax, CASE, draw, "s", "cpu")}, "s")[draw]
    assert (True, False) == (is_refusal(draw, found), is_refusal(VARIED, found))


def test_bytes_between_the_elements_are_guarded(session: MakeSession, softmax: Reference) -> None:
    text = "import torch\ndef f(x, y):\n    y.fill_(0)\n    torch.as_strided(x, (1,), (1,), 33).fill_(7)\n"
    reach = text.replace("torch.as_strided(x, (1,), (1,), 33).fill_(7)", "ctypes.memset(x.data_ptr() + 33 * 4, 7, 4)")
    with pytest.raises(Stop) as caught:
        run_drawn(session("import ctypes\n" + reach), make(softmax, CASE, f"{VARIED}+padded.x", "s", "cpu"))
    assert ("out-of-bounds", True) == (caught.value.reason, "padding" in caught.value.message)


BEYOND_ITS_ROWS = """
import ctypes
def f(x, y=None):
    out = x if y is None else y
    out += 1 if y is None else x - out
    ctypes.memset(out.data_ptr() + 4 * out.shape[1], 7, 4)
"""


@pytest.mark.parametrize("output", ["y", "x"])
def test_bytes_between_the_elements_of_an_output_are_guarded(session: MakeSession, output: str) -> None:
    x, alias = torch.arange(24.0).view(4, 6), "x" if output == "x" else ""
    spec = TensorSpec((4, 6), "float32", alias)
    drawn = Drawn(check(n=1), {"x": x}, {output: spec}, Truth({}, {}), {output: "padded"})
    with pytest.raises(Stop) as caught:
        run_drawn(session(BEYOND_ITS_ROWS), drawn)
    assert ("out-of-bounds", True) == (caught.value.reason, "padding" in caught.value.message)
    run_drawn(session(BEYOND_ITS_ROWS.replace("    ctypes", "    # ctypes")), drawn)


def _in_place(name: str = "x") -> Drawn:
    x = torch.arange(100.0)
    return Drawn(check(n=1), {"x": x}, {name: TensorSpec((100,), "float32", alias="x")}, Truth({}, {}))


@pytest.mark.parametrize("name", ["x", "out"])
def test_an_output_that_is_an_input(session: MakeSession, name: str) -> None:
    found = run_drawn(session("def f(x):\n    x += 1\n"), _in_place(name))
    assert (True, True) == (torch.equal(torch.arange(100.0) + 1, found.outputs[name]), found.repeated)


def test_an_input_that_may_change(session: MakeSession) -> None:
    spec = TensorSpec((4,), "float32")
    drawn = Drawn(check(n=1), {"x": torch.ones(4), "w": torch.ones(4)}, {"y": spec}, Truth({}, {}), {}, ("w",))
    run_drawn(session("def f(x, w, y):\n    y.copy_(x)\n    w.zero_()\n"), drawn)


def test_repeats(session: MakeSession) -> None:
    drawn = Drawn(check(n=1), {"x": torch.ones(4)}, {"y": TensorSpec((4,), "float32")}, Truth({}, {}))
    text = "n = 0\ndef f(x, y):\n    global n\n    n += 1\n    y.fill_(n % 3)\n"
    assert (3, 1) == (
        len(repeats(session(text), drawn, 9)),
        len(repeats(session("def f(x, y):\n    y.fill_(1)\n"), drawn, 9)),
    )


def test_digest_sees_one_bit_and_the_place() -> None:
    ones = torch.ones(1000)
    other, swapped = ones.clone(), torch.arange(1000.0)
    other[500] = 1.0000001
    turned = swapped.flip(0)
    assert 4 == len({int(digest(values)) for values in (ones, other, swapped, turned)})


def _stops(session: Session, reference: Reference, *draws: str) -> dict[str, Stop]:
    found = run_all(session, {draw: make(reference, CASE, draw, "s", "cpu") for draw in draws}, "s")
    return {draw: one for draw, one in found.items() if isinstance(one, Stop)}


BY_ADDRESS = """
import torch
kept = {}
def f(x, y):
    key = (x.data_ptr(), tuple(x.shape))
    if key not in kept:
        kept[key] = torch.softmax(x, -1)
    y.copy_(kept[key])
"""
PUT_OFF = """
import torch
late = []
def f(x, y):
    for a, b in late:
        b.copy_(torch.softmax(a, -1))
    late[:] = [(x, y)]
"""


@pytest.mark.parametrize("turn", range(5))
def test_an_answer_kept_by_its_address(session: MakeSession, softmax: Reference, turn: int) -> None:
    assert False in _try(session(BY_ADDRESS), softmax, "normal:0", "normal:1").values()


def test_work_put_off_until_the_next_call(session: MakeSession, softmax: Reference) -> None:
    # Made up for when the slot has moved, it lands in what surrounds the next one, or what was there before is wrong.
    draws = {draw: make(softmax, CASE, draw, "s", "cpu") for draw in DRAWS[:4]}
    found = run_all(session(PUT_OFF), draws, "s")
    reasons = {one.reason for one in found.values() if isinstance(one, Stop)}
    wrong = [draw for draw, one in found.items() if isinstance(one, Trial) and not _is_right(softmax, draws[draw], one)]
    assert reasons & {"unwritten", "out-of-bounds", "input-changed"} or wrong


def test_a_fault_of_one_of_many_is_told_as_if_it_were_alone(session: MakeSession, softmax: Reference) -> None:
    text = """
        import ctypes, torch
        def f(x, y):
            y.copy_(torch.softmax(x, -1))
            if x.shape[0] == 1:
                ctypes.memset(y.data_ptr() + y.numel() * 4 + 8, 0, 4)
    """
    draw, said = f"{VARIED}+alone.rows", "4 bytes after y were overwritten, the nearest 8 bytes away from it"
    found = _stops(session(text), softmax, *DRAWS)
    assert {draw: ("out-of-bounds", said)} == {one: (own.reason, own.message) for one, own in found.items()}


def test_a_refused_layout_does_not_stop_the_others(session: MakeSession, softmax: Reference) -> None:
    text = "import torch\ndef f(x, y):\n    assert x.is_contiguous(), 'no'\n    y.copy_(torch.softmax(x, -1))\n"
    draws = ("normal:0", f"{VARIED}+transposed.x", "normal:1")
    found = run_all(session(text), {draw: make(softmax, CASE, draw, "s", "cpu") for draw in draws}, "s")
    assert dict(zip(draws, (Trial, Stop, Trial), strict=True)) == {draw: type(one) for draw, one in found.items()}


# It knows by its stack whether it is called among others, as no honest kernel would.
TOGETHER = """
import os, sys, torch
calls = 0
def f(x, y):
    global calls
    calls += 1
    frame, names = sys._getframe(), []
    while frame:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    if "call_all" in names and calls == 2:
        {fault}
    y.copy_(torch.softmax(x, -1))
"""


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("raise ValueError('twice')", "raised"), ("os._exit(3)", "exited"), ("x.zero_()", "input-changed")],
)
def test_a_fault_of_calls_together_alone_is_not_lost(
    session: MakeSession, softmax: Reference, fault: str, reason: str
) -> None:
    text = TOGETHER.format(fault=fault)
    found = _stops(session(text), softmax, "normal:0", "normal:1", "tail:0")
    assert [(reason, True)] == [
        (one.reason, "only when it is called together with" in one.message) for one in found.values()
    ]


def test_memory_that_only_many_calls_need_is_no_fault(session: MakeSession, softmax: Reference) -> None:
    assert {} == _stops(session(TOGETHER.format(fault="raise MemoryError()")), softmax, *DRAWS[:3])


def test_slow_calls_do_not_hang(session: MakeSession, softmax: Reference, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "TOGETHER", 0.2)
    slow = RIGHT.replace("    y.copy_", "    __import__('time').sleep(1.2)\n    y.copy_")
    assert {} == _stops(session(slow, call_s=10.0), softmax, "normal:0", "normal:1")


def test_many_slots_in_several_batches(
    session: MakeSession, softmax: Reference, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BATCH_BYTES, "cpu", 2 * Subject(make(softmax, CASE, VARIED, "s", "cpu")).size)
    assert dict.fromkeys(DRAWS, True) == _try(session(RIGHT), softmax, *DRAWS)


NAMES = st.lists(st.lists(st.sampled_from("abcdef"), min_size=2, max_size=6, unique=True), min_size=1, max_size=5)


@given(NAMES)
def test_places(batches: list[list[str]]) -> None:
    places, stride, last = Places("cpu", 6, 2**20), 2**20, dict[str, int]()
    for names in batches:
        at = {name: divmod(begin, stride) for name, begin in places.deal(names).items()}
        assert len(names) == len({place for place, _ in at.values()})
        assert all(shift < MOVES * MOVE_BYTES and shift % MOVE_BYTES == 0 for _, shift in at.values())
        assert not any(last.get(name) == place for name, (place, _) in at.items())
        last |= {name: place for name, (place, _) in at.items()}
