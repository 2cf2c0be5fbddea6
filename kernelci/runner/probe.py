"""A known sum on each GPU, computed by a process of its own as the job's user: `python -m kernelci.runner.probe`.

Prints one JSON line. The host reads it strictly: a probe that prints anything else has failed.
"""

import json
import os
import subprocess
import sys
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from kernelci.runner.health import Fault

PROBE_S = 120.0
MODULE = "kernelci.runner.probe"


class Probed(Struct, frozen=True, forbid_unknown_fields=True):
    """What the probe found: one text for each GPU, empty where the sum was right; or why nothing could be computed."""

    faults: Annotated[tuple[Annotated[str, Meta(max_length=600)], ...], Meta(max_length=64)] = ()
    missing: Annotated[str, Meta(max_length=600)] = ""


def compute() -> Probed:
    """Compute on every GPU, so also on one that is not the current one."""
    try:
        import torch
    except ImportError as error:
        return Probed(missing=str(error)[:500])
    from kernelci.workbench.health import computed

    found = []
    for index in range(torch.cuda.device_count()):
        try:
            found.append(computed(f"cuda:{index}"))
        except Exception as error:
            found.append(f"{type(error).__name__}: {str(error)[:500]}")
    return Probed(tuple(found))


def run(command: list[str], count: int, timeout_s: float = PROBE_S) -> tuple[list[Fault], str]:
    """Run the probe; what is wrong with `count` GPUs, and why it may not have been run at all."""
    env = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=timeout_s, check=False, stdin=subprocess.DEVNULL, cwd="/",
            env=env | {"HOME": "/tmp", "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return [Fault(f"the known sum was not computed: {str(error)[-300:]}")], ""
    return judged(done.stdout, done.returncode, done.stderr.decode(errors="replace"), count)


def judged(printed: bytes, code: int, said: str, count: int) -> tuple[list[Fault], str]:
    """What a probe's answer means."""
    try:
        found = msgspec.json.decode(printed[:100_000], type=Probed)
    except msgspec.MsgspecError:
        return [Fault(f"the known sum was not computed (exit code {code}): {said.strip()[-300:]}")], ""
    if found.missing:
        return [], f"no known sum is computed before a job: {found.missing}"
    if len(found.faults) != count:
        return [Fault(f"the known sum was computed on {len(found.faults)} of {count} GPUs")], ""
    return [Fault(f"GPU {index}: {text}", severe=True) for index, text in enumerate(found.faults) if text], ""


if __name__ == "__main__":
    print(json.dumps(msgspec.to_builtins(compute())))
    sys.exit(0)
