"""Why the times of two reports can't be compared: another GPU, driver, compiler or clock."""

from collections.abc import Iterator

from kernelci.model import Environment

# What must agree, besides the GPU and the versions; what only one report tells is no difference, and a remark.
_FIELDS = {
    "target": "target",
    "driver": "driver",
    "CUDA": "cuda",
    "clocks": "clocks",
    "power limit": "power_limit_w",
    "ECC": "ecc",
    "MIG": "mig",
}
# Distributions that make no machine code and launch nothing.
_HARMLESS = frozenset({"numpy"})
_MISSING = ("", None)


def differences(a: Environment, b: Environment) -> tuple[str, ...]:
    """Why times of `a` and `b` are not comparable, a reason each ("driver 580.1 and 575.2"); empty if they are."""
    found = [_pair("GPU", a.gpu, b.gpu)] if a.gpu != b.gpu else []
    found += [_pair(label, *values) for label, values in _known(a, b) if values[0] != values[1]]
    for name in sorted(a.versions.keys() & b.versions.keys() - _HARMLESS):
        if a.versions[name] != b.versions[name]:
            found.append(_pair(name, a.versions[name], b.versions[name]))
    return tuple(found)


def remarks(a: Environment, b: Environment) -> tuple[str, ...]:
    """What does not forbid the comparison and yet is worth knowing: another GPU of the same kind, what is unknown."""
    found = []
    if a.gpu_uuid and b.gpu_uuid and a.gpu_uuid != b.gpu_uuid:
        found.append(f"not the same GPU: {a.gpu_uuid} and {b.gpu_uuid}")
    unknown = [label for label, name in _FIELDS.items() if _in_one(getattr(a, name), getattr(b, name))]
    if unknown:
        found.append(f"known of one side only: {', '.join(unknown)}")
    return tuple(found)


def _known(a: Environment, b: Environment) -> Iterator[tuple[str, tuple[object, object]]]:
    for label, name in _FIELDS.items():
        values = (getattr(a, name), getattr(b, name))
        if not any(value in _MISSING for value in values):
            yield label, values


def _in_one(first: object, second: object) -> bool:
    return (first in _MISSING) != (second in _MISSING)


def _pair(label: str, first: object, second: object) -> str:
    return f"{label} {_shown(first)} and {_shown(second)}"


def _shown(value: object) -> str:
    return f"{value:g} W" if isinstance(value, float) else str(value) or "none"
