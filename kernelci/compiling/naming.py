"""Template arguments of CUDA C++ under the names that the source gives them: `matmul<BM=128, STAGES=4>`."""

import re
from collections.abc import Iterable

_CONFIG = re.compile(r"([A-Za-z_]\w*)<([^<>]*)>")
_TEMPLATE = re.compile(r"template\s*<([^<>]*)>\s*(?:extern\s+\"C\"\s*)?__global__[^;{]*?\b((?!__)[A-Za-z_]\w*)\s*\(")
_NAME = re.compile(r"([A-Za-z_]\w*)\s*(?:=.*)?$", re.DOTALL)
_SYMBOL = re.compile(r"_Z(?P<length>[1-9]\d{0,3})(?P<rest>[A-Za-z_]\w*)I")
_NUMBER = re.compile(r"L[ijlmbx](\d+)E")
MAX_CHARACTERS = 2**20


def named(config: str, symbol: str, sources: Iterable[str]) -> str:
    """A kernel's name expression, or where there is none its mangled symbol, with its parameters' names; as it is where
    no source declares such a kernel. Of a symbol only numbers are told."""
    found = _CONFIG.fullmatch(config.strip())
    mangled = _SYMBOL.match(symbol) if not config else None
    if found is None and mangled is None:
        return config
    name = found[1] if found else mangled["rest"][: int(mangled["length"])] if mangled else ""
    values = [each.strip() for each in found[2].split(",")] if found else _NUMBER.findall(symbol)
    for source in sources:
        for declared in _TEMPLATE.finditer(source[:MAX_CHARACTERS]):
            names = [each.strip() for each in declared[1].split(",")]
            names = names if found else [each for each in names if not each.startswith(("typename", "class"))]
            told = [_NAME.search(each) for each in names]
            if declared[2] == name and len(told) == len(values):
                pairs = zip(told, values, strict=True)
                return f"{name}<{', '.join(f'{one[1]}={value}' if one else value for one, value in pairs)}>"
    return config
