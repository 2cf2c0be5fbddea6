"""Differences of machine code and PTX: what only looks different is the same."""

from kernelci.dumps import difference
from kernelci.dumps.difference import MAX_LINES, Line
from kernelci.dumps.sass import Instruction

BASE = [
    Instruction("LDG.E.128", "R4, desc[UR4][R2.64]", "P0", "k.py", 7),
    Instruction("FADD", "R4, R4, R5", "", "k.py", 8),
]
RENAMED = [Instruction("LDG.E.128", "R8, desc[UR6][R12.64]", "P1", "k.py", 9), Instruction("FADD", "R9, R9.reuse, R7")]
PTX = """\
.visible .entry {name}(
\t.param .u64 {name}_param_0
)
{{
\t.reg .b32 \t%r<{count}>;
\t.loc\t1 {count} 0
$L__BB0_{count}:
\tadd.s32 \t%r{count}, %r1, %tid.x; // begin
\t@%p1 bra \t$L__BB0_{count};
\t{more}
}}
\t.section\t.debug_str {{ .b8 {count} }}
"""


def test_other_registers_are_no_difference() -> None:
    assert () == difference.of_sass(BASE, RENAMED)


def test_a_narrower_load_is_one_with_its_source_line() -> None:
    found = difference.of_sass(BASE, [Instruction("LDG.E", *("R4, desc[UR4][R2.64]", "P0", "k.py", 7)), *BASE[1:]])
    assert [("-", "@P LDG.E.128 R, desc[UR][R.64]"), ("+", "@P LDG.E R, desc[UR][R.64]")] == [
        (line.mark, line.text.split("  ")[0]) for line in found if line.mark in "+-"
    ]
    assert all(line.text.endswith("// k.py:7") for line in found if line.mark in "+-")


def test_ptx_by_another_name_is_the_same() -> None:
    base, head = PTX.format(name="one", count=4, more="ret;"), PTX.format(name="another", count=9, more="ret;")
    assert () == difference.of_ptx(base, head)


def test_ptx_that_does_something_else() -> None:
    base, head = PTX.format(name="one", count=4, more="ret;"), PTX.format(name="one", count=4, more="exit;")
    assert [Line("-", "ret;"), Line("+", "exit;")] == [
        line for line in difference.of_ptx(base, head) if line.mark in "+-"
    ]


def test_too_long_is_said() -> None:
    long = BASE * (MAX_LINES // 2 + 1)
    assert ["@"] == [line.mark for line in difference.of_sass(long, BASE)]


def test_as_text() -> None:
    assert "@ from line 1\n- a\n+ b\n" == difference.text([Line("@", "from line 1"), Line("-", "a"), Line("+", "b")])
