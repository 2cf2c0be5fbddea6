"""Where the bad elements of an output sit, in words that show the fault: last tile, row block, lane pattern."""

import torch
from msgspec import Struct

PERIODS = (2, 4, 8, 16, 32, 64, 128)
TILES = (256, 128, 64, 32, 16)
NEIGHBOURS = 2  # on either side of an element whose values are shown


class Location(Struct, frozen=True):
    """Bad elements of one output: how many, of how many, the first, the worst with its neighbours, and a pattern."""

    count: int
    total: int
    first: tuple[int, ...]
    worst: tuple[int, ...]
    pattern: str

    def text(self) -> str:
        """One line for the report."""
        share = self.count / max(self.total, 1)
        place = f"first at {list(self.first)}, worst at {list(self.worst)}"
        return f"{self.count} of {self.total} elements ({share:.2%}) are bad; {place}; {self.pattern}"


def locate(bad: torch.Tensor, weight: torch.Tensor | None = None) -> Location | None:
    """Describe the True elements of `bad`; `weight` (error over bound) says which is worst. None if there is none."""
    count = int(bad.sum())
    if count == 0:
        return None
    flat = bad.reshape(-1)
    first = int(flat.to(torch.uint8).argmax())
    heaviest = first if weight is None else int(torch.where(flat, weight.reshape(-1).nan_to_num(3e38), -1.0).argmax())
    return Location(count, bad.numel(), _index(first, bad.shape), _index(heaviest, bad.shape), pattern(bad))


def neighbours(name: str, at: tuple[int, ...], actual: torch.Tensor, oracle: torch.Tensor) -> str:
    """The values around an index along the last axis, got against expected."""
    if not at:
        return f"{name}: got {float(actual):.6g}, expected {float(oracle):.6g}"
    begin, end = max(0, at[-1] - NEIGHBOURS), at[-1] + NEIGHBOURS + 1
    got, want = (values[at[:-1]][begin:end].double().tolist() for values in (actual, oracle))
    rows = ", ".join(f"{g:.6g}/{w:.6g}" for g, w in zip(got, want, strict=True))
    where = ", ".join([*map(str, at[:-1]), f"{begin}:{begin + len(got)}"])
    return f"{name}[{where}] got/expected: {rows}"


def pattern(bad: torch.Tensor) -> str:
    """The first description that fits, from the most telling to "scattered"."""
    if bool(bad.all()):
        return "everything is bad"
    rows, columns = _profile(bad)
    for text in (_whole_rows(bad, rows), _tail("columns", columns), _tail("rows", rows), _block(rows), _lanes(columns)):
        if text:
            return text
    return "a single one" if int(bad.sum()) == 1 else "they are scattered"


def _profile(bad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Which rows, and which columns, hold a bad element."""
    matrix = bad.reshape(-1, bad.shape[-1]) if bad.dim() else bad.reshape(1, 1)
    return matrix.any(dim=1), matrix.any(dim=0)


def _whole_rows(bad: torch.Tensor, rows: torch.Tensor) -> str:
    matrix = bad.reshape(-1, bad.shape[-1])
    whole = matrix.all(dim=1)
    if not bool((whole == rows).all()) or matrix.shape[1] == 1:
        return ""
    return (
        f"whole rows are bad ({int(whole.sum())} of {len(whole)}){_suffix(_tail('rows', rows) or _lanes(rows, 'rows'))}"
    )


def _suffix(text: str) -> str:
    return f": {text}" if text else ""


def _tail(axis: str, hit: torch.Tensor) -> str:
    """All bad places lie from some index to the end: the last tile, or what lies past the last whole one."""
    indices = hit.nonzero().reshape(-1)
    begin, size = int(indices[0]), len(hit)
    if begin == 0 or int(indices[-1]) != size - 1 or size - begin > max(size // 2, 1):
        return ""
    tile = next((tile for tile in TILES if begin == (size - 1) // tile * tile and begin > 0), 0)
    which = f", the last tile of {tile}" if tile else ""
    return f"all in the last {axis}, {begin} to {size - 1} of {size}{which}"


def _block(rows: torch.Tensor) -> str:
    """All bad rows lie in one aligned block."""
    indices = rows.nonzero().reshape(-1)
    first, last = int(indices[0]), int(indices[-1])
    fitting = [tile for tile in reversed(TILES) if first // tile == last // tile and tile < len(rows)]
    if not fitting:
        return ""
    begin = first // fitting[0] * fitting[0]
    return f"all in the block of rows {begin} to {min(begin + fitting[0], len(rows)) - 1}"


def _lanes(hit: torch.Tensor, axis: str = "columns") -> str:
    """The bad places repeat with a period: some lanes of a vector or a warp."""
    size = len(hit)
    for period in PERIODS:
        if size < 3 * period:
            break
        folded = hit[: size // period * period].view(-1, period)
        if bool((folded == folded[0]).all()) and not bool(folded[0].all()):
            lanes = folded[0].nonzero().reshape(-1).tolist()
            return f"a pattern that repeats every {period} {axis}: {lanes[:8]}"
    return ""


def _index(flat: int, shape: torch.Size) -> tuple[int, ...]:
    index: list[int] = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return tuple(reversed(index))
