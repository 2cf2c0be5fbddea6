"""Marks in the CUDA source that TileLang generates: each kernel's track, and what a pipelined loop does.

Within `T.Pipelined` a kernel can't mark by itself: TileLang spreads the loop's statements over producers and consumers,
or over iterations, and one that it does not know changes how (seen with 0.1.15: on sm_90a only consumers get the marks,
and for sm_80 it makes no code at all). So where the card names a region `load` or `wait` that the kernel nowhere marks,
it is put here around what the generated code loads by and waits for. Code of another form stays without.
"""

import re
from collections.abc import Iterable

KERNEL = re.compile(r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s*)?\w+\s*\([^)]*\)\s*\{')
_WAIT = re.compile(
    r"^( *)(?:mbarrier\[.*\]\.wait\(.*\);|tl::cp_async_wait<\d+>\(\);(?:\n *__syncthreads\(\);)?)$", re.MULTILINE
)
_PRODUCER = re.compile(r"^( *)(?P<dealloc>tl::warpgroup_reg_dealloc<\d+>\(\);)\n(?P<loop>(?:\1.*\n)+)", re.MULTILINE)
# A mark before the loop stands before the parting of producers and consumers, though its end is the consumers' alone.
_PARTING = re.compile(
    r"^(?P<mark> *KERNELCI_BEGIN_\w+\(\);\n)"
    r"(?P<producer> *if \(.*\) \{\n *tl::warpgroup_reg_dealloc<\d+>\(\);\n"
    r"(?:.*\n)*? *tl::warpgroup_reg_alloc<\d+>\(\);\n)",
    re.MULTILINE,
)
# Loops over asynchronous copies, and what ends their group.
_LOOP = (
    r"^(?P<indent> *)(?:#pragma unroll\n(?P=indent))?for \(.*\{\n(?:(?P=indent) +tl::cp_async_gs.*\n)+(?P=indent)\}\n"
)
_NEXT = _LOOP.replace("(?P<indent> *)", "(?P=indent)")
_COPIES = re.compile(rf"{_LOOP}(?:{_NEXT})*^(?P=indent)tl::cp_async_commit\(\);\n", re.MULTILINE)


def marked(code: str, regions: Iterable[str]) -> str:
    """The source with a track in each kernel, and marks of `load` and `wait` where the card wants them."""
    wanted = {name for name in regions if f"KERNELCI_BEGIN_{name}" not in code}
    code = _PARTING.sub(r"\g<producer>\g<mark>", code)
    done, end = [], 0
    for producer in _PRODUCER.finditer(code):
        done += [_plain(code[end : producer.start()], wanted), _produced(producer, wanted)]
        end = producer.end()
    return KERNEL.sub(r"\g<0> KERNELCI_TRACE_KERNEL();", "".join([*done, _plain(code[end:], wanted)]))


def _plain(code: str, wanted: set[str]) -> str:
    if "wait" in wanted:
        code = _WAIT.sub(lambda found: _around("wait", found[0], found[1]), code)
    if "load" in wanted:
        code = _COPIES.sub(lambda found: _around("load", found[0].rstrip("\n"), found["indent"]) + "\n", code)
    return code


def _produced(found: re.Match[str], wanted: set[str]) -> str:
    """A producer is loading from its first copy to its last, even while it waits for room."""
    loop = found["loop"].rstrip("\n")
    return f"{found[1]}{found['dealloc']}\n{_around('load', loop, found[1]) if 'load' in wanted else loop}\n"


def _around(name: str, text: str, indent: str) -> str:
    return f"{indent}KERNELCI_BEGIN_{name}();\n{text}\n{indent}KERNELCI_END_{name}();"
