"""What torch's extension loader needs to link in a sandbox, with the libraries of NVIDIA's wheels."""

import os
from pathlib import Path

from kernelci.workbench import toolkit

_FOLDER = "TORCH_EXTENSIONS_DIR"


def wanted() -> bool:
    """Whether this process may build extensions: its backend has named a folder for them."""
    return _FOLDER in os.environ


def make_ready() -> None:
    """Give the linker the names that it looks for: wheels have `libcudart.so.13` and no `libcudart.so`."""
    home = toolkit.home()
    libraries = sorted((home / "lib").glob("lib*.so.[0-9]*")) if home is not None else []
    folder = Path(os.environ[_FOLDER]).parent / "libraries"
    folder.mkdir(parents=True, exist_ok=True)
    for library in libraries:
        link = folder / f"{library.name.partition('.so')[0]}.so"
        if not link.exists():
            link.symlink_to(library)
    known = os.environ.get("LIBRARY_PATH", "")
    if str(folder) not in known.split(os.pathsep):
        os.environ["LIBRARY_PATH"] = os.pathsep.join(filter(None, (str(folder), known)))
