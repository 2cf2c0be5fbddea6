"""Variants of a kernel as kernels of a temporary project: same file names, same card, same reference."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from kernelci.card import parse as parse_card
from kernelci.catalog import Kernel
from kernelci.mutating.mutants import Mutant
from kernelci.mutating.syntax import Node, parse, regions, text, walk

_STORES = ("store", "atomic_add", "atomic_max", "atomic_min", "atomic_xchg", "atomic_cas")


def variant(kernel: Kernel, name: str, changed: Mapping[str, bytes], folder: Path) -> Kernel:
    """Write the kernel's own files into `folder`, some of them changed; a kernel of that name."""
    folder.mkdir(parents=True)
    for path in kernel.sources():
        (folder / path.name).write_bytes(changed.get(path.name, path.read_bytes()))
    path = folder / kernel.path.name
    return Kernel(name, path, parse_card(path.read_text(encoding="utf-8")))


def mutated(kernel: Kernel, mutant: Mutant, root: Path) -> Kernel:
    """The kernel with one mutant's change, in a folder of its own."""
    source = (kernel.path.parent / mutant.file).read_bytes()
    folder = root / "kernels" / f"{mutant.number:04}"
    return variant(kernel, mutant.id, {mutant.file: mutant.applied(source)}, folder)


def storeless(kernel: Kernel) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Each Triton function that stores, without its stores: it fails if the cases call the function at all."""
    if kernel.backend != "triton":
        return
    source = kernel.path.read_bytes()
    for region in regions(kernel.path, parse(kernel.path, source)):
        stores = [node for node in walk(region.node) if _is_store(node)] if region.device else []
        if stores:
            yield region.function, {kernel.path.name: _without(source, stores)}


def _is_store(node: Node) -> bool:
    if node.type != "expression_statement" or not node.named_children or node.named_children[0].type != "call":
        return False
    return text(node.named_children[0].child_by_field_name("function")).rpartition(".")[2] in _STORES


def _without(source: bytes, nodes: list[Node]) -> bytes:
    for node in reversed(nodes):
        source = source[: node.start_byte] + b"pass" + source[node.end_byte :]
    return source
