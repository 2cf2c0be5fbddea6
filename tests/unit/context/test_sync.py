"""Sync: every kind of source, what changes, what breaks, and that nothing half-made is ever served."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelci.context import places, reading, shard, status, sync
from kernelci.context.search import Index
from kernelci.errors import ConfigError

from .conftest import outcomes, paths, said, text

Project = Callable[..., Path]
FOLDER = "name = 'docs'\nkind = 'folder'\nwhere = 'docs'"


def _docs(root: Path, **files: str | bytes) -> None:
    (root / "docs").mkdir(exist_ok=True)
    for name, content in files.items():
        stem, _, suffix = name.rpartition("_")
        (root / "docs" / f"{stem}.{suffix}").write_bytes(content if isinstance(content, bytes) else content.encode())


# --- folders, and what all kinds share


def test_one_odd_file_costs_its_structure_only(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def odd(path: str, text: str) -> Any:
        raise ValueError("a bug")

    monkeypatch.setattr("kernelci.context.chunks_python.of", odd)
    root = project(FOLDER)
    _docs(root, a_md="# A", b_py="def tile(): ...")
    sync.sync(root)
    index = Index(root)
    kinds = [result.kind for result in index.search("tile").results]
    index.close()
    assert ["text"] == kinds


def test_second_sync_does_nothing(project: Project) -> None:
    root = project(FOLDER)
    _docs(root, a_md="# A\nwords")
    assert ["indexed", "unchanged"] == [outcomes(root)["docs"] for _ in range(2)]


def test_changed_file(project: Project) -> None:
    root = project(FOLDER)
    _docs(root, a_md="# A\nold")
    sync.sync(root)
    _docs(root, a_md="# A\nnewer")
    assert ("indexed", "# A\nnewer") == (outcomes(root)["docs"], text(root, "docs:a.md"))


def test_only_what_can_be_read_is_taken_and_the_rest_is_named(project: Project) -> None:
    root = project(FOLDER)
    _docs(
        root, a_md="fine", b_py=b"ELF\0\0\0", c_txt=b"x" * (reading.MAX_FILE_BYTES + 1), d_md="größer".encode("cp1252")
    )
    (root / "docs" / "picture.png").write_bytes(b"png")
    sync.sync(root)
    record = places.read(places.home(root)).get("docs")
    assert record is not None
    assert ("b.py: binary", "c.txt: larger than 8 MiB") == record.left_out
    assert (["a.md", "d.md"], "größer") == (paths(root), text(root, "docs:d.md"))


def test_a_line_of_100_mb_is_left_out_at_once(project: Project) -> None:
    root = project(FOLDER)
    _docs(root, a_md="fine")
    with (root / "docs" / "huge.txt").open("wb") as file:
        file.truncate(100 * 2**20)
    assert "indexed: 1 files, 1 chunks, 1 files left out" == said(root)


def test_a_link_out_of_the_folder_is_not_followed(project: Project, tmp_path: Path) -> None:
    root = project(FOLDER)
    _docs(root, a_md="fine")
    (tmp_path / "secret.md").write_text("secret", encoding="utf-8")
    (root / "docs" / "link.md").symlink_to(tmp_path / "secret.md")
    sync.sync(root)
    assert ["a.md"] == paths(root)


@pytest.mark.parametrize(
    "place", ["docs:../kernelci.toml", "docs:/etc/passwd", "docs:../../x", "docs:", "docs:%", "nope:a.md", "x"]
)
def test_nothing_but_what_is_indexed_can_be_opened(project: Project, place: str) -> None:
    root = project(FOLDER)
    _docs(root, a_md="fine")
    sync.sync(root)
    with pytest.raises(ConfigError):
        text(root, place)


def test_interrupted_while_indexing_serves_the_old(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    root = project(FOLDER)
    _docs(root, a_md="old")
    sync.sync(root)
    _docs(root, a_md="new", b_md="newer")

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shard, "_row", killed)
        with pytest.raises(KeyboardInterrupt):
            sync.sync(root)
    assert (["a.md"], "old") == (paths(root), text(root, "docs:a.md"))
    assert ("indexed", "new") == (outcomes(root)["docs"], text(root, "docs:a.md"))


def test_what_a_killed_sync_left_is_cleared_and_never_served(project: Project) -> None:
    root = project(FOLDER)
    _docs(root, a_md="fine")
    folder = places.made(root)
    (folder / "docs-123.db.99.partial").write_bytes(b"half")
    (folder / "docs-456.db").write_bytes(b"whole, but not in the manifest")
    sync.sync(root)
    record = places.read(folder).get("docs")
    assert record is not None
    assert [record.shard] == [path.name for path in folder.iterdir() if ".db" in path.name]


def test_manifest_that_is_broken_is_made_anew(project: Project) -> None:
    root = project(FOLDER)
    _docs(root, a_md="fine")
    sync.sync(root)
    (places.home(root) / places.MANIFEST).write_bytes(b'{"format": 1, "rec')
    assert "indexed" == outcomes(root)["docs"]


def test_one_sync_at_a_time(project: Project) -> None:
    root = project(FOLDER)
    _docs(root, a_md="fine")
    with places.locked(places.made(root)), pytest.raises(ConfigError, match="another"):
        sync.sync(root)


def test_source_that_is_configured_no_more_is_served_no_more(project: Project) -> None:
    root = project(FOLDER, "name = 'more'\nkind = 'folder'\nwhere = 'docs'")
    _docs(root, a_md="fine")
    sync.sync(root)
    project(FOLDER)
    sync.sync(root)
    assert ["docs"] == [record.name for record in places.read(places.home(root)).records]


def test_git_ignores_the_context(project: Project) -> None:
    root = project(FOLDER)
    _docs(root, a_md="fine")
    sync.sync(root)
    assert "*\n" == (root / ".kernelci" / ".gitignore").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("tables", "names", "said"),
    [
        ((FOLDER,), ("nope",), "no context source"),
        ((FOLDER, FOLDER), (), "two context sources"),
        (("name = 'A b'\nkind = 'folder'",), (), "kernelci.toml"),
        (("name = 'a'\nkind = 'ftp'",), (), "kernelci.toml"),
        (("name = 'a'\nkind = 'git'\nref = '--upload-pack=x'",), (), "kernelci.toml"),
        (("name = 'a'\nkind = 'folder'\nwhat = 1",), (), "kernelci.toml"),
    ],
)
def test_wrong_configuration(project: Project, tables: tuple[str, ...], names: tuple[str, ...], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        sync.sync(project(*tables), names)


def test_missing_folder_fails_alone(project: Project) -> None:
    root = project(FOLDER, "name = 'other'\nkind = 'folder'\nwhere = 'nowhere'")
    _docs(root, a_md="fine")
    assert {"docs": "indexed", "other": "failed"} == outcomes(root)


def test_index_is_smaller_than_twice_its_sources(project: Project) -> None:
    root = project("name = 'own'\nkind = 'folder'\nwhere = '" + str(Path(reading.__file__).parents[1]) + "'")
    sync.sync(root)
    (record,) = places.read(places.home(root)).records
    assert (places.home(root) / record.shard).stat().st_size < 2 * record.source_bytes


# --- packages


def _install(folder: Path, version: str, **files: str) -> None:
    """A package as pip would leave it."""
    info = folder / f"demo_dsl-{version}.dist-info"
    for old in folder.glob("demo_dsl-*.dist-info"):
        for file in old.iterdir():
            file.unlink()
        old.rmdir()
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: demo-dsl\nVersion: {version}\nLicense: MIT\n", encoding="utf-8"
    )
    names = []
    for name, content in files.items():
        path = f"demo_dsl/{name}.py"
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(content, encoding="utf-8")
        names.append(path)
    listed = [*names, "demo_dsl/gone.py", "../../bin/demo"]
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in listed), encoding="utf-8")


PACKAGE = "name = 'demo'\nkind = 'package'\nwhere = 'demo-dsl'\ndsl = 'demo'"


def test_package_in_its_installed_version(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    _install(site, "1.0", core="def tile(): ...\n")
    monkeypatch.syspath_prepend(str(site))
    root = project(PACKAGE)
    sync.sync(root)
    (record,) = places.read(places.home(root)).records
    assert ("1.0", "MIT", ["demo_dsl/core.py"]) == (record.version, record.license, paths(root))


def test_status_names_a_package_that_was_upgraded(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    _install(site, "1.0", core="def tile(): ...\n")
    monkeypatch.syspath_prepend(str(site))
    root = project(PACKAGE)
    before = [state.state for state in status.states(root)]
    sync.sync(root)
    current = [state.state for state in status.states(root)]
    _install(site, "2.0", core="def tile2(): ...\n")
    (stale,) = status.states(root)
    assert (["not indexed"], ["current"], "stale") == (before, current, stale.state)
    assert "1.0 is indexed, 2.0 is here; kernelci context sync demo" == stale.said


def test_package_that_is_not_installed(project: Project) -> None:
    root = project("name = 'demo'\nkind = 'package'\nwhere = 'no-such-package-here'")
    assert ({"demo": "missing"}, ["missing"]) == (outcomes(root), [state.state for state in status.states(root)])


# --- own kernels


def test_own_kernels_with_their_last_results(project: Project) -> None:
    from kernelci import results
    from kernelci.model import SCHEMA_VERSION, Environment, KernelReport, Report, RungResult
    from kernelci.reasons import Outcome

    root = project("name = 'own'\nkind = 'kernels'")
    (root / "kernels" / "add").mkdir(parents=True)
    (root / "kernels" / "add" / "one.py").write_text('"""Adds."""\n', encoding="utf-8")
    rung = RungResult("compile", Outcome.PASSED)
    kernel = KernelReport("add/one", "add", "triton", "kernels/add/one.py", "0", (rung,))
    report = Report(SCHEMA_VERSION, "0", "2026-01-01T00:00:00+00:00", 0.0, Environment("m", "3", gpu="H200"), (kernel,))
    (root / "kernelci-report").mkdir()
    results.write(report, root / "kernelci-report")
    sync.sync(root)
    shown = text(root, "own:results/add/one.md")
    assert ["kernels/add/one.py", "results/add/one.md"] == paths(root)
    assert ("# Result of add/one (triton): PASSED", "- compile PASSED") == (
        shown.splitlines()[0],
        shown.splitlines()[-1],
    )


def test_a_shard_is_a_file_that_is_whole_or_not_there(tmp_path: Path) -> None:
    def texts() -> Any:
        yield shard.Text("a.md", "# A\nwords")
        assert [] == [name for name in os.listdir(tmp_path) if not name.endswith(".partial")]

    shard.build(tmp_path / "x.db", texts())
    database = sqlite3.connect(tmp_path / "x.db")
    assert (["x.db"], (1,)) == (os.listdir(tmp_path), database.execute("SELECT count(*) FROM chunks").fetchone())
    database.close()
