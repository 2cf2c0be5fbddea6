"""Sync: every kind of source, what changes, what breaks, and that nothing half-made is ever served."""

import os
import sqlite3
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from kernelci.context import opening, places, reading, shard, status, sync
from kernelci.context.search import Index
from kernelci.errors import ConfigError

Project = Callable[..., Path]
FOLDER = "name = 'docs'\nkind = 'folder'\nwhere = 'docs'"


def _outcomes(root: Path, *names: str) -> dict[str, str]:
    return {done.name: done.outcome for done in sync.sync(root, names)}


def _said(root: Path) -> str:
    (done,) = sync.sync(root)
    return f"{done.outcome}: {done.said}"


def _paths(root: Path) -> list[str]:
    index = Index(root)
    found = sorted(path for _, database in index.shards for path, _ in opening.texts(database))
    index.close()
    return found


def _text(root: Path, place: str) -> str:
    index = Index(root)
    page = opening.page(index, place)
    index.close()
    return page.text


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
    assert ["indexed", "unchanged"] == [_outcomes(root)["docs"] for _ in range(2)]


def test_changed_file(project: Project) -> None:
    root = project(FOLDER)
    _docs(root, a_md="# A\nold")
    sync.sync(root)
    _docs(root, a_md="# A\nnewer")
    assert ("indexed", "# A\nnewer") == (_outcomes(root)["docs"], _text(root, "docs:a.md"))


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
    assert (["a.md", "d.md"], "größer") == (_paths(root), _text(root, "docs:d.md"))


def test_a_line_of_100_mb_is_left_out_at_once(project: Project) -> None:
    root = project(FOLDER)
    _docs(root, a_md="fine")
    with (root / "docs" / "huge.txt").open("wb") as file:
        file.truncate(100 * 2**20)
    assert "indexed: 1 files, 1 chunks, 1 files left out" == _said(root)


def test_a_link_out_of_the_folder_is_not_followed(project: Project, tmp_path: Path) -> None:
    root = project(FOLDER)
    _docs(root, a_md="fine")
    (tmp_path / "secret.md").write_text("secret", encoding="utf-8")
    (root / "docs" / "link.md").symlink_to(tmp_path / "secret.md")
    sync.sync(root)
    assert ["a.md"] == _paths(root)


@pytest.mark.parametrize(
    "place", ["docs:../kernelci.toml", "docs:/etc/passwd", "docs:../../x", "docs:", "docs:%", "nope:a.md", "x"]
)
def test_nothing_but_what_is_indexed_can_be_opened(project: Project, place: str) -> None:
    root = project(FOLDER)
    _docs(root, a_md="fine")
    sync.sync(root)
    with pytest.raises(ConfigError):
        _text(root, place)


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
    assert (["a.md"], "old") == (_paths(root), _text(root, "docs:a.md"))
    assert ("indexed", "new") == (_outcomes(root)["docs"], _text(root, "docs:a.md"))


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
    assert "indexed" == _outcomes(root)["docs"]


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
    assert {"docs": "indexed", "other": "failed"} == _outcomes(root)


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
    assert ("1.0", "MIT", ["demo_dsl/core.py"]) == (record.version, record.license, _paths(root))


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
    assert ({"demo": "missing"}, ["missing"]) == (_outcomes(root), [state.state for state in status.states(root)])


# --- git


def _git(repository: Any, more: str = "") -> str:
    return f"name = 'repo'\nkind = 'git'\nwhere = '{repository.path}'\n{more}"


def test_git_at_a_branch_with_filters(project: Project, repository: Any) -> None:
    commit = repository.commit(
        LICENSE_txt="\nApache License\n", docs__a_md="# A", docs__skip_md="x", src__b_py="x = 1", c_bin="x"
    )
    root = project(_git(repository, "ref = 'main'\npaths = ['docs/*', 'src/*']\nexclude = ['*skip*']"))
    sync.sync(root)
    (record,) = places.read(places.home(root)).records
    assert (commit, "main", "LICENSE.txt: Apache License") == (record.commit, record.version, record.license)
    assert ["docs/a.md", "src/b.py"] == _paths(root)


def test_git_that_moved_on(project: Project, repository: Any) -> None:
    repository.commit(a_md="old")
    root = project(_git(repository))
    sync.sync(root)
    again = _outcomes(root)["repo"]
    repository.commit(a_md="new")
    assert ("unchanged", "indexed", "new") == (again, _outcomes(root)["repo"], _text(root, "repo:a.md"))


def test_git_at_a_commit_that_is_here_needs_no_network(project: Project, repository: Any) -> None:
    commit = repository.commit(a_md="old")
    repository.git("config", "uploadpack.allowAnySHA1InWant", "true")
    root = project(_git(repository, f"ref = '{commit}'"))
    first = _outcomes(root)["repo"]
    repository.path.rename(repository.path.with_name("moved"))
    assert ("indexed", "unchanged") == (first, _outcomes(root)["repo"])


def test_renamed_branch_is_named_and_the_old_stays(project: Project, repository: Any) -> None:
    repository.commit(a_md="old")
    root = project(_git(repository, "ref = 'main'"))
    sync.sync(root)
    repository.git("branch", "-m", "main", "trunk")
    said = _said(root)
    assert "failed" == said.partition(":")[0]
    assert "it has no branch 'main': its default is trunk, its branches trunk; the last version stays" in said
    assert "old" == _text(root, "repo:a.md")


def test_git_that_is_gone_fails_and_the_old_stays(project: Project, repository: Any) -> None:
    repository.commit(a_md="old")
    root = project(_git(repository))
    sync.sync(root)
    repository.path.rename(repository.path.with_name("moved"))
    assert ("failed", "old") == (_outcomes(root)["repo"], _text(root, "repo:a.md"))
    assert ["current"] == [state.state for state in status.states(root)]


def test_git_with_binaries_links_and_huge_files(project: Project, repository: Any) -> None:
    (repository.path / "link.md").symlink_to("/etc/passwd")
    repository.commit(a_md="fine", b_py=b"\0\0", c_txt=b"x" * (reading.MAX_FILE_BYTES + 1))
    root = project(_git(repository))
    assert "indexed: " in _said(root)
    (record,) = places.read(places.home(root)).records
    assert (["a.md"], ("b.py: binary", "c.txt: larger than 8 MiB")) == (_paths(root), record.left_out)


def test_git_that_broke_off_goes_on(project: Project, repository: Any) -> None:
    repository.commit(a_md="fine")
    root = project(_git(repository))
    store = places.made(root) / "git" / "repo.git"
    store.mkdir(parents=True)
    (store / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    (store / "objects" / "pack").mkdir(parents=True)
    (store / "objects" / "pack" / "tmp_pack_x").write_bytes(b"half")
    assert "indexed" == _outcomes(root)["repo"]


@pytest.mark.parametrize("where", ["--upload-pack=touch x", "ext::sh -c touch% x", ""])
def test_git_url_that_is_a_command(project: Project, where: str, tmp_path: Path) -> None:
    root = project(f"name = 'repo'\nkind = 'git'\nwhere = '{where}'")
    assert ("failed", []) == (_outcomes(root)["repo"], list(tmp_path.rglob("x")))


# --- the web


def _web(web: Any, path: str = "/doc.html") -> str:
    return f"name = 'doc'\nkind = 'web'\nwhere = '{web.url}{path}'\ndsl = 'ptx'"


def test_page(project: Project, web: Any) -> None:
    web.serve("/doc.html", "<h1>wgmma</h1><p>text</p>", etag='"1"')
    root = project(_web(web))
    sync.sync(root)
    (record,) = places.read(places.home(root)).records
    assert (["127.0.0.1/doc.html"], '"1"') == (_paths(root), record.version)
    assert "not to be redistributed" in record.license


def test_page_that_did_not_change_is_not_sent_again(project: Project, web: Any) -> None:
    web.serve("/doc.html", "<p>a</p>", etag='"1"')
    root = project(_web(web))
    outcomes = [_outcomes(root)["doc"] for _ in range(2)]
    assert (["indexed", "unchanged"], [200, 304]) == (outcomes, [sent for _, _, sent in web.requests])


def test_page_without_marks_that_did_not_change(project: Project, web: Any) -> None:
    web.serve("/doc.html", "<p>a</p>")
    root = project(_web(web))
    assert ["indexed", "unchanged"] == [_outcomes(root)["doc"] for _ in range(2)]


def test_page_that_changed(project: Project, web: Any) -> None:
    web.serve("/doc.html", "<p>old</p>", etag='"1"')
    root = project(_web(web))
    sync.sync(root)
    web.serve("/doc.html", "<p>new</p>", etag='"2"')
    assert ("indexed", "new") == (_outcomes(root)["doc"], _text(root, "doc:127.0.0.1/doc.html").strip())


def test_page_that_is_gone_keeps_the_old(project: Project, web: Any) -> None:
    web.serve("/doc.html", "<p>old</p>")
    root = project(_web(web))
    sync.sync(root)
    del web.pages["/doc.html"]
    assert f"failed: {web.url}/doc.html: HTTP 404; the last version stays" == _said(root)
    assert "old" == _text(root, "doc:127.0.0.1/doc.html").strip()


def test_download_that_broke_off_goes_on_where_it_stopped(project: Project, web: Any) -> None:
    from .conftest import answer

    whole = f"<p>{'tensor ' * 2000}</p><p>end</p>"

    def broken(request: BaseHTTPRequestHandler) -> None:
        answer(request, 200, whole[:5000].encode(), "text/html", '"1"', length=len(whole))

    web.pages["/doc.html"] = broken
    root = project(_web(web))
    first = _outcomes(root)["doc"]
    served = places.read(places.home(root)).records
    web.serve("/doc.html", whole, etag='"1"')
    assert ("failed", (), "indexed") == (first, served, _outcomes(root)["doc"])
    assert ("bytes=5000-", 206) == (web.requests[-1][1]["Range"], web.requests[-1][2])
    assert _text(root, "doc:127.0.0.1/doc.html").rstrip().endswith("end")


def test_download_that_broke_off_begins_anew_where_the_page_changed(project: Project, web: Any) -> None:
    from .conftest import answer

    web.pages["/doc.html"] = lambda request: answer(request, 200, b"<p>old", "text/html", '"1"', length=4000)
    root = project(_web(web))
    sync.sync(root)
    web.serve("/doc.html", "<p>new</p>", etag='"2"')
    assert ("indexed", "new") == (_outcomes(root)["doc"], _text(root, "doc:127.0.0.1/doc.html").strip())


def test_huge_page(project: Project, web: Any) -> None:
    from .conftest import answer

    web.pages["/doc.html"] = lambda request: answer(request, 200, b"", "text/html", "", length=100 * 2**20)
    assert f"failed: {web.url}/doc.html: larger than 64 MiB" == _said(project(_web(web)))


def test_page_in_the_wrong_encoding(project: Project, web: Any) -> None:
    web.serve("/doc.html", "<p>größer</p>".encode("latin-1"), kind="text/html; charset=utf-8")
    root = project(_web(web))
    sync.sync(root)
    assert "größer" == _text(root, "doc:127.0.0.1/doc.html").strip()


def test_binary_page_is_left_out(project: Project, web: Any) -> None:
    web.serve("/doc.html", b"%PDF\0\0", kind="application/pdf")
    assert "1 files left out" in _said(project(_web(web)))


def test_page_in_frames(project: Project, web: Any) -> None:
    web.serve("/doc.html", '<frameset><frame src="a/b.html"><frame src="http://elsewhere.invalid/x"></frameset>')
    web.serve("/a/b.html", '<h1>wgmma</h1><iframe src="../doc.html"></iframe>')
    root = project(_web(web))
    sync.sync(root)
    assert (["127.0.0.1/a/b.html", "127.0.0.1/doc.html"], 2) == (_paths(root), len(web.requests))


@pytest.mark.parametrize("where", ["file:///etc/passwd", "ftp://x/y", "http://127.0.0.1:9/", "doc.html"])
def test_page_that_can_not_be_had(project: Project, where: str) -> None:
    assert "failed" == _outcomes(project(f"name = 'doc'\nkind = 'web'\nwhere = '{where}'"))["doc"]


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
    text = _text(root, "own:results/add/one.md")
    assert ["kernels/add/one.py", "results/add/one.md"] == _paths(root)
    assert ("# Result of add/one (triton): PASSED", "- compile PASSED") == (text.splitlines()[0], text.splitlines()[-1])


def test_a_shard_is_a_file_that_is_whole_or_not_there(tmp_path: Path) -> None:
    def texts() -> Any:
        yield shard.Text("a.md", "# A\nwords")
        assert [] == [name for name in os.listdir(tmp_path) if not name.endswith(".partial")]

    shard.build(tmp_path / "x.db", texts())
    database = sqlite3.connect(tmp_path / "x.db")
    assert (["x.db"], (1,)) == (os.listdir(tmp_path), database.execute("SELECT count(*) FROM chunks").fetchone())
    database.close()
