"""Cubins that can't be read: stripped, of an architecture that nobody knows, cut off. The rest of a dump stands."""

import importlib.util
import struct
import subprocess
from pathlib import Path

import pytest

from kernelci.compiling import builder
from kernelci.compiling.builder import Compiled
from kernelci.dumps import comparing
from kernelci.dumps.comparing import Compared
from kernelci.footprint import specimen
from kernelci.workbench.protocol import BuiltKernel

TARGET = "sm_80"
PTX = f"""
.version 8.0
.target {TARGET}
.address_size 64
.visible .entry sum(.param .u64 out) {{
  .reg .u64 %d<2>; .reg .f32 %f<2>;
  ld.param.u64 %d1, [out];
  ld.global.f32 %f1, [%d1];
  add.f32 %f1, %f1, %f1;
  st.global.f32 [%d1], %f1;
  ret;
}}
"""


@pytest.fixture(scope="module")
def cubin(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A small kernel, by Triton's own ptxas."""
    spec = importlib.util.find_spec("triton")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("needs Triton's ptxas")
    tool = Path(spec.submodule_search_locations[0], "backends", "nvidia", "bin", "ptxas")
    folder = tmp_path_factory.mktemp("bad")
    (folder / "k.ptx").write_text(PTX)
    subprocess.run([tool, f"-arch={TARGET}", folder / "k.ptx", "-o", folder / "k.cubin"], check=True)
    return (folder / "k.cubin").read_bytes()


def _stripped(cubin: bytes) -> bytes:
    """As `strip --strip-all` leaves it: no table of sections, and so no symbols and no names."""
    return cubin[:40] + struct.pack("<Q", 0) + cubin[48:58] + struct.pack("<HHH", 0, 0, 0) + cubin[64:]


def _of_nobody(cubin: bytes) -> bytes:
    """The same code, of an architecture that does not exist (the ELF header's flags name it)."""
    return cubin[:48] + struct.pack("<I", 0x00FEFEFE) + cubin[52:]


def _built(cubin: bytes) -> Compiled:
    return builder._described(BuiltKernel("sum", "", {"cubin": cubin, "ptx": b".visible .entry sum()"}))


def _beside(base: Compiled, head: Compiled) -> Compared:
    return comparing.compare(specimen(base, TARGET, "k"), specimen(head, TARGET, "k"))


BAD = {
    "stripped": _stripped,
    "of nobody's architecture": _of_nobody,
    "cut off": lambda cubin: cubin[: len(cubin) // 2],
    "empty": lambda cubin: b"\x7fELF" + bytes(60),
}


@pytest.mark.parametrize("how", BAD)
def test_a_cubin_that_can_not_be_read_says_so_and_keeps_the_rest(cubin: bytes, how: str) -> None:
    good, bad = _built(cubin), _built(BAD[how](cubin))
    assert ((), True) == (bad.resources, bad.files["sass"].startswith(b"// no disassembly: "))
    assert good.files["ptx"] == bad.files["ptx"]
    found = _beside(good, bad)
    (said,) = found.notes()
    assert said.startswith("head has no machine code to compare: ")
    assert not found.identical


@pytest.mark.parametrize("how", BAD)
def test_a_base_that_can_not_be_read_is_said_of_base(cubin: bytes, how: str) -> None:
    (said,) = _beside(_built(BAD[how](cubin)), _built(cubin)).notes()
    assert said.startswith("base has no machine code to compare: ")


def test_builds_beside_it_are_compared(cubin: bytes) -> None:
    good, bad = _built(cubin), _built(_stripped(cubin))
    places = [("a", good), ("b", bad), ("c", good)]
    base = [specimen(good, TARGET, f"k/case/{TARGET}/{place}") for place, _ in places]
    head = [specimen(one, TARGET, f"k/case/{TARGET}/{place}") for place, one in places]
    found = [comparing.compare(*pair).identical for pair in comparing.paired(base, head).pairs]
    assert [True, False, True] == found
