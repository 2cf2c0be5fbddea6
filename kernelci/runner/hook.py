"""What GitHub's runner calls before a job's first step and after its last: asks the host, prints its answer, obeys.

It runs as the job's user, by the system's Python (3.7 or later) and without a package. `hook.py started SOCKET`: exit
code 0 lets the job go on.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence

WAIT_S = 120.0
HOLD_S = 60.0  # steps with `if: always()` run even after a hook that failed: the host ends them before this is over
FIELDS = (
    "repository", "workflow_ref", "ref", "event_name", "actor", "triggering_actor", "run_id", "run_attempt", "sha",
    "job",
)  # fmt: skip


def claim(environ: Mapping[str, str]) -> dict[str, str]:
    """The job, from the variables that GitHub's runner sets."""
    return {name: environ.get(f"GITHUB_{name.upper()}", "")[:1000] for name in FIELDS}


def asked(kind: str, path: str, environ: Mapping[str, str]) -> tuple[bool, str]:
    """Whether the host takes the job, and why not. Raises OSError, ValueError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(WAIT_S)
        connection.connect(path)
        connection.sendall(json.dumps({"kind": kind, "claim": claim(environ)}).encode() + b"\n")
        data = b""
        while not data.endswith(b"\n"):
            part = connection.recv(65536)
            if not part:
                break
            data += part
    answer = json.loads(data)
    return bool(answer.get("admitted")), str(answer.get("why", ""))


def escaped(text: str) -> str:
    """Text of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def main(arguments: Sequence[str]) -> int:
    """Ask and obey; after a refusal wait to be ended."""
    kind, path = arguments
    try:
        admitted, why = asked(kind, path, os.environ)
    except (OSError, ValueError) as error:
        admitted, why = False, f"the host does not answer: {error}"
    if kind == "completed":
        return 0
    if admitted:
        print("kernelci: this host takes the job")
        return 0
    print(f"::error title=not taken by this host::{escaped(why)}", flush=True)
    time.sleep(HOLD_S)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
