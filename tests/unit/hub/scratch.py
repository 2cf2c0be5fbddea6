"""A small git repository to judge changes in."""

import subprocess
from pathlib import Path

CARD = '# /// script\n# [tool.kernelci]\n# reference = "{0}"\n# backend = "triton"\n# entry = "{0}"\n# ///\n'


def git(folder: Path, *arguments: str) -> str:
    """One git command, by somebody."""
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *settings, "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def write(folder: Path, files: dict[str, str | None]) -> None:
    """Write files by their paths; None removes one."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(text)


def commit(folder: Path, files: dict[str, str | None]) -> str:
    """Write the files and commit everything."""
    write(folder, files)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "m")
    return git(folder, "rev-parse", "HEAD")


def repository(folder: Path) -> Path:
    """One reference and two kernels on main; branch `change` is checked out."""
    folder.mkdir(exist_ok=True)
    git(folder, "init", "--quiet")
    commit(
        folder,
        {
            "references/sum.py": "reference = 1\n",
            "kernels/sum/one.py": CARD.format("sum") + "one = 1\n",
            "kernels/sum/two.py": CARD.format("sum") + "two = 2\n",
            "kernelci.toml": "seeds = 1\n",
            "README.md": "text\n",
        },
    )
    git(folder, "checkout", "--quiet", "-b", "change")
    return folder
