"""A request to compile, answered in a candidate: the kernel's builds for all its cases on one target (the untrusted
side)."""

from types import ModuleType
from typing import Any

from kernelci import backends, gpus
from kernelci.compiling import building
from kernelci.compiling.loading import load, namespace
from kernelci.compiling.naming import named
from kernelci.reference import Case
from kernelci.workbench.private import packed, written
from kernelci.workbench.protocol import Build, Built, BuiltKernel, Call, Launch, TensorPlace


def build(message: Build) -> Built:
    """Compile the kernel for the target, for each case; distinct builds only."""
    backend = backends.get(message.backend)
    module: ModuleType = load(written(message.source))
    gpu = gpus.for_target(message.target)
    sources = [text.decode(errors="replace") for name, text in message.source.files.items() if name.endswith(".cu")]
    found: dict[tuple[str, str, bytes], BuiltKernel] = {}
    notes: list[str] = []
    for call in message.cases:
        result = building.build(
            module, message.entry, namespace(call.case), _specs(call), gpu, backend, message.all_configs
        )
        notes += result.notes
        for made in result.builds:
            key = (made.symbol, made.config, made.files.get("cubin", made.files.get("ptx", b"")))
            found.setdefault(
                key,
                BuiltKernel(
                    made.symbol,
                    named(made.config, made.symbol, sources),
                    made.files,
                    _case_id(call),
                    made.block,
                    made.grid,
                    made.dynamic_shared_bytes,
                ),
            )
    cache = _filled(backend) if message.keep_cache else b""
    sizes = [(namespace(call.case), _specs(call)) for call in message.sizes]
    told = building.launches(module, message.entry, sizes, gpu, backend)
    launches = [
        Launch(_case_id(call)[:300], name[:300], grid)
        for call, launched in zip(message.sizes, told, strict=False)
        for name, grid in dict.fromkeys(launched)
    ]
    return Built(tuple(found.values()), tuple(dict.fromkeys(notes)), cache, tuple(launches[:10_000]))


def _filled(backend: Any) -> bytes:
    """The DSL's cache, with what it builds only where it launches."""
    if hasattr(backend, "fill_cache"):
        backend.fill_cache()
    return packed()


def _case_id(call: Call) -> str:
    return Case("bench", tuple(call.case.items())).id


def _specs(call: Call) -> dict[str, Any]:
    """Stand-in specifications for the arguments and outputs of a call."""
    values: dict[str, Any] = {**call.arguments, **call.outputs}
    return {
        name: building.StandInSpec(value.shape, value.dtype, value.strides) if isinstance(value, TensorPlace) else value
        for name, value in values.items()
    }
