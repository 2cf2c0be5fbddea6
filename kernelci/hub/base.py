"""The base's configuration, read through the API at the base's commit: no checkout, and nothing of the change."""

import base64
import binascii
import tempfile
from pathlib import Path

from msgspec import Struct

from kernelci import config
from kernelci.hub.client import Client


class _Content(Struct, frozen=True):
    content: str = ""


def options(client: Client, commit: str, prefix: str = "") -> config.Config:
    """The options of the project at `prefix` in a commit. Raises ConfigError."""
    with tempfile.TemporaryDirectory(prefix="kernelci-base-") as folder:
        for name in config.FILES:
            found = client.find(f"contents/{prefix}{name}", _Content, ref=commit)
            if found is not None:
                (Path(folder) / name).write_bytes(_decoded(found.content))
        return config.load(Path(folder), environ={})


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except binascii.Error:
        return b"\0"  # no TOML: config.load says which file it is
