"""`kernelci rehearse`: a pull request through both workflows on this machine, up to the comment, and nothing posted.

W1's part climbs as the action does and packs the artifact; W2's part unpacks, decodes, concludes and renders by the
very functions that `publish` uses. GitHub's answers (which files, which head) come from git here.
"""

import tempfile
import zipfile
from pathlib import Path
from typing import Literal

from kernelci import config, results
from kernelci.git import Repository
from kernelci.hub import REPORT, artifact_name, conclude, limits, unpack
from kernelci.hub.action import Inputs, act, pack
from kernelci.hub.conclude import Conclusion, Touched
from kernelci.hub.pull import File, Files
from kernelci.model import Report
from kernelci.publication import Publication
from kernelci.reporters import Context, get

_STATUS = {"added": "added", "modified": "modified", "removed": "removed"}


def rehearse(
    root: Path, base: str, head: str, mode: Literal["run", "compile"], out: Path, second: bool = False
) -> tuple[str, int]:
    """The comment, and the exit code: 0 where the check would be green, 1 where it would not. Raises KernelciError.

    `second`: as after an owner's label, the change's own judge is heard too.
    """
    repository = Repository(root)
    archive = climbed(root, base, head, mode, out, second)
    report = results.decode(unpack.member(archive, results.FILE_NAME, limits.REPORT))
    change = touched(repository, report)
    found = conclude.conclude(report, change, 1, repository.prefix)
    where = _publication(repository, report, change, found)
    page = get("markdown").render(report, Context(root=root, publication=where))
    return page if isinstance(page, str) else page.decode(), 0 if found.word in ("success", "skipped") else 1


def climbed(root: Path, base: str, head: str, mode: str, out: Path, second: bool = False) -> Path:
    """What W1 does: climb, and leave the artifact as GitHub would keep it."""
    results.check_writable(out)
    with tempfile.TemporaryDirectory(prefix="kernelci-rehearse-") as folder:
        inputs = Inputs(mode=mode, root=root, out=Path(folder) / "out", base=base, head=head, second=second)
        act(inputs)
        pack(inputs)
        archive = out / f"{artifact_name(REPORT, 1)}.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
            made.write(inputs.out / "artifacts" / "report" / results.FILE_NAME, results.FILE_NAME)
        results.write(results.read(inputs.out), out)
    return archive


def touched(repository: Repository, report: Report) -> Touched:
    """What GitHub would say that the change touches, sorted by the base's configuration."""
    change = report.change
    assert change is not None  # the action was given a base
    found = repository.touched(repository.merge_base(change.base, change.head), change.head)
    files = tuple(File(each.path, _STATUS[each.change]) for each in found)
    return conclude.touched(Files(files, complete=True), options_at(repository, change.base), repository.prefix)


def options_at(repository: Repository, base: str) -> config.Config:
    """The configuration of the base commit."""
    tree = repository.tree(base)
    with tempfile.TemporaryDirectory(prefix="kernelci-options-") as folder:
        for name in config.FILES:
            if (entry := tree.get(f"{repository.prefix}{name}")) and entry.is_regular:
                (Path(folder) / name).write_bytes(next(repository.contents([entry])))
        return config.load(Path(folder))


def _publication(repository: Repository, report: Report, change: Touched, found: Conclusion) -> Publication:
    assert report.change is not None
    return Publication(
        pull=0,
        head_sha=report.change.head,
        base_sha=report.change.base,
        head=f"{repository.folder.name}:rehearsed",
        is_fork=False,
        run=0,
        attempt=1,
        run_url="",
        **conclude.meaning(found, change),
    )
