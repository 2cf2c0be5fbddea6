"""What `list` says of cards that would stop their kernels."""

from pathlib import Path

import pytest

from kernelci import listing

CARD = """\
# /// script
# [tool.kernelci]
# reference = "{}"
# backend = "{}"
# entry = "f"
# targets = ["{}"]
# ///
"""


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (("one", "triton", "sm_90a"), ""),
        (("two", "triton", "sm_90a"), "no reference 'two'"),
        (("one", "tritn", "sm_90a"), "no backend 'tritn'"),
        (("one", "triton", "sm_35"), "no GPU in gpus.toml has the target 'sm_35'"),
    ],
)
def test_what_a_card_names_is_there(tmp_path: Path, values: tuple[str, str, str], said: str) -> None:
    for folder in ("kernels/one", "references"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "one.py").write_text(CARD.format(*values), encoding="utf-8")

    (record,), code = listing.rows(tmp_path)

    assert (said, 2 if said else 0) == (record["error"].partition(";")[0], code)
