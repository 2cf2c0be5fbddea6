"""The card: one block, read as text, and a clear refusal for everything else."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelci import card
from kernelci.errors import CardError

GOOD = """# /// script
# dependencies = ["triton>=3.4"]
# [tool.kernelci]
# reference = "softmax"
# backend = "triton"
# entry = "softmax"
# targets = ["sm_80", "sm_90a"]
# ///
"""


def _refusal(text: str) -> str:
    with pytest.raises(CardError) as caught:
        card.parse(text)
    return caught.value.message


def test_read() -> None:
    expected = card.Card(
        reference="softmax",
        backend="triton",
        entry="softmax",
        targets=("sm_80", "sm_90a"),
        dependencies=("triton>=3.4",),
    )
    assert expected == card.parse(GOOD + "import triton\n")


def test_expectation() -> None:
    table = '# [tool.kernelci.expect]\n# rung = "run"\n# outcome = "FAILED"\n# reason = "shape"\n# gpu = true\n# ///\n'
    assert card.Expectation("run", "FAILED", "shape", True) == card.parse(GOOD.replace("# ///\n", table)).expect


def test_blocks_of_other_tools_do_not_matter() -> None:
    other = "# /// other\n# x = 1\n# ///\n\n"
    assert card.parse(GOOD) == card.parse(other + GOOD)


def test_nothing_is_run() -> None:
    assert card.parse(GOOD) == card.parse(GOOD + "raise SystemExit(1)\n")


def test_none() -> None:
    assert "no card: the file has no `# /// script` block" == _refusal("import triton\n")


def test_two() -> None:
    assert "two cards: the file has 2 `# /// script` blocks" == _refusal(GOOD + "\n" + GOOD)


def test_unclosed() -> None:
    assert "not closed" in _refusal(GOOD.removesuffix("# ///\n") + "import triton\n")


def test_broken_toml_names_the_files_line() -> None:
    text = '"""What it does."""\n\n' + GOOD.replace('"softmax"', '"softmax', 1)
    line = next(number for number, each in enumerate(text.splitlines(), 1) if each.endswith('"softmax'))
    said = _refusal(text)
    assert ("the card is not TOML: ", True) == (said[:22], f"(at line {line}, " in said)


@pytest.mark.parametrize("table", ["", "# tool = 3\n", "# tool.other = {}\n", "# tool.kernelci = 3\n"])
def test_without_our_table(table: str) -> None:
    assert "the script block has no [tool.kernelci] table" == _refusal(
        f"# /// script\n# dependencies = []\n{table}# ///\n"
    )


def test_dependencies_in_our_table() -> None:
    text = GOOD.replace("# [tool", "# x = 1\n# [tool").replace("# targets", "# dependencies = []\n# targets")
    assert "dependencies stand above" in _refusal(text)


@pytest.mark.parametrize("key", ["reference", "backend", "entry"])
def test_missing_key(key: str) -> None:
    kept = [line for line in GOOD.splitlines() if not line.startswith(f"# {key} ")]
    assert f"missing required field `{key}`" in _refusal("\n".join(kept) + "\n")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('surprise = "x"', "surprise"),
        ("entry2 = 3", "entry2"),
        ('name = "../x"', "$.name"),
        ('name = ".."', "$.name"),
        ('name = ""', "$.name"),
        ("expect = 3", "$.expect"),
        ('expect = { rung = "run", outcome = "FAILED", why = "" }', "why"),
    ],
)
def test_key_that_is_refused(line: str, said: str) -> None:
    assert said in _refusal(GOOD.replace("# targets", f"# {line}\n# targets"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('entry = "softmax"', "entry = 3", "$.entry"),
        ('entry = "softmax"', 'entry = "soft max"', "$.entry"),
        ('reference = "softmax"', 'reference = "../softmax"', "$.reference"),
        ('["sm_80", "sm_90a"]', '"sm_80"', "$.targets"),
        ('"sm_90a"', '"h100"', "$.targets"),
        ('["triton>=3.4"]', '"triton"', "$.dependencies"),
    ],
)
def test_wrong_value(old: str, new: str, said: str) -> None:
    assert said in _refusal(GOOD.replace(old, new))


@given(st.text(max_size=300))
def test_any_text_is_a_card_or_one_error(text: str) -> None:
    assert "card" in _refusal(text)


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), max_size=60)
)
def test_any_line_in_the_block_is_taken_or_one_error(line: str) -> None:
    text = GOOD.replace("# targets", f"# {line}\n# targets")
    with contextlib.suppress(CardError):
        assert "softmax" == card.parse(text).reference
