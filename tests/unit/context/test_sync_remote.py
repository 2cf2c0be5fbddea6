"""Sync from git and the web: what moved, changed, broke off or is gone, and what is then served."""

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from kernelci.context import places, reading, status, sync

from .conftest import answer, outcomes, paths, said, text

Project = Callable[..., Path]


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
    assert ["docs/a.md", "src/b.py"] == paths(root)


def test_git_that_moved_on(project: Project, repository: Any) -> None:
    repository.commit(a_md="old")
    root = project(_git(repository))
    sync.sync(root)
    again = outcomes(root)["repo"]
    repository.commit(a_md="new")
    assert ("unchanged", "indexed", "new") == (again, outcomes(root)["repo"], text(root, "repo:a.md"))


def test_git_at_a_commit_that_is_here_needs_no_network(project: Project, repository: Any) -> None:
    commit = repository.commit(a_md="old")
    repository.git("config", "uploadpack.allowAnySHA1InWant", "true")
    root = project(_git(repository, f"ref = '{commit}'"))
    first = outcomes(root)["repo"]
    repository.path.rename(repository.path.with_name("moved"))
    assert ("indexed", "unchanged") == (first, outcomes(root)["repo"])


def test_renamed_branch_is_named_and_the_old_stays(project: Project, repository: Any) -> None:
    repository.commit(a_md="old")
    root = project(_git(repository, "ref = 'main'"))
    sync.sync(root)
    repository.git("branch", "-m", "main", "trunk")
    told = said(root)
    assert "failed" == told.partition(":")[0]
    assert "it has no branch 'main': its default is trunk, its branches trunk; the last version stays" in told
    assert "old" == text(root, "repo:a.md")


def test_git_that_is_gone_fails_and_the_old_stays(project: Project, repository: Any) -> None:
    repository.commit(a_md="old")
    root = project(_git(repository))
    sync.sync(root)
    repository.path.rename(repository.path.with_name("moved"))
    assert ("failed", "old") == (outcomes(root)["repo"], text(root, "repo:a.md"))
    assert ["current"] == [state.state for state in status.states(root)]


def test_git_with_binaries_links_and_huge_files(project: Project, repository: Any) -> None:
    (repository.path / "link.md").symlink_to("/etc/passwd")
    repository.commit(a_md="fine", b_py=b"\0\0", c_txt=b"x" * (reading.MAX_FILE_BYTES + 1))
    root = project(_git(repository))
    assert "indexed: " in said(root)
    (record,) = places.read(places.home(root)).records
    assert (["a.md"], ("b.py: binary", "c.txt: larger than 8 MiB")) == (paths(root), record.left_out)


def test_git_that_broke_off_goes_on(project: Project, repository: Any) -> None:
    repository.commit(a_md="fine")
    root = project(_git(repository))
    store = places.made(root) / "git" / "repo.git"
    store.mkdir(parents=True)
    (store / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    (store / "objects" / "pack").mkdir(parents=True)
    (store / "objects" / "pack" / "tmp_pack_x").write_bytes(b"half")
    assert "indexed" == outcomes(root)["repo"]


@pytest.mark.parametrize("where", ["--upload-pack=touch x", "ext::sh -c touch% x", ""])
def test_git_url_that_is_a_command(project: Project, where: str, tmp_path: Path) -> None:
    root = project(f"name = 'repo'\nkind = 'git'\nwhere = '{where}'")
    assert ("failed", []) == (outcomes(root)["repo"], list(tmp_path.rglob("x")))


# --- the web


def _web(web: Any, path: str = "/doc.html") -> str:
    return f"name = 'doc'\nkind = 'web'\nwhere = '{web.url}{path}'\ndsl = 'ptx'"


def test_page(project: Project, web: Any) -> None:
    web.serve("/doc.html", "<h1>wgmma</h1><p>text</p>", etag='"1"')
    root = project(_web(web))
    sync.sync(root)
    (record,) = places.read(places.home(root)).records
    assert (["127.0.0.1/doc.html"], '"1"') == (paths(root), record.version)
    assert "not to be redistributed" in record.license


def test_page_that_did_not_change_is_not_sent_again(project: Project, web: Any) -> None:
    web.serve("/doc.html", "<p>a</p>", etag='"1"')
    root = project(_web(web))
    both = [outcomes(root)["doc"] for _ in range(2)]
    assert (["indexed", "unchanged"], [200, 304]) == (both, [sent for _, _, sent in web.requests])


def test_page_without_marks_that_did_not_change(project: Project, web: Any) -> None:
    web.serve("/doc.html", "<p>a</p>")
    root = project(_web(web))
    assert ["indexed", "unchanged"] == [outcomes(root)["doc"] for _ in range(2)]


def test_page_that_changed(project: Project, web: Any) -> None:
    web.serve("/doc.html", "<p>old</p>", etag='"1"')
    root = project(_web(web))
    sync.sync(root)
    web.serve("/doc.html", "<p>new</p>", etag='"2"')
    assert ("indexed", "new") == (outcomes(root)["doc"], text(root, "doc:127.0.0.1/doc.html").strip())


def test_page_that_is_gone_keeps_the_old(project: Project, web: Any) -> None:
    web.serve("/doc.html", "<p>old</p>")
    root = project(_web(web))
    sync.sync(root)
    del web.pages["/doc.html"]
    assert f"failed: {web.url}/doc.html: HTTP 404; the last version stays" == said(root)
    assert "old" == text(root, "doc:127.0.0.1/doc.html").strip()


def test_download_that_broke_off_goes_on_where_it_stopped(project: Project, web: Any) -> None:
    whole = f"<p>{'tensor ' * 2000}</p><p>end</p>"

    def broken(request: BaseHTTPRequestHandler) -> None:
        answer(request, 200, whole[:5000].encode(), "text/html", '"1"', length=len(whole))

    web.pages["/doc.html"] = broken
    root = project(_web(web))
    first = outcomes(root)["doc"]
    served = places.read(places.home(root)).records
    web.serve("/doc.html", whole, etag='"1"')
    assert ("failed", (), "indexed") == (first, served, outcomes(root)["doc"])
    assert ("bytes=5000-", 206) == (web.requests[-1][1]["Range"], web.requests[-1][2])
    assert text(root, "doc:127.0.0.1/doc.html").rstrip().endswith("end")


def test_download_that_broke_off_begins_anew_where_the_page_changed(project: Project, web: Any) -> None:
    web.pages["/doc.html"] = lambda request: answer(request, 200, b"<p>old", "text/html", '"1"', length=4000)
    root = project(_web(web))
    sync.sync(root)
    web.serve("/doc.html", "<p>new</p>", etag='"2"')
    assert ("indexed", "new") == (outcomes(root)["doc"], text(root, "doc:127.0.0.1/doc.html").strip())


def test_huge_page(project: Project, web: Any) -> None:
    web.pages["/doc.html"] = lambda request: answer(request, 200, b"", "text/html", "", length=100 * 2**20)
    assert f"failed: {web.url}/doc.html: larger than 64 MiB" == said(project(_web(web)))


def test_page_in_the_wrong_encoding(project: Project, web: Any) -> None:
    web.serve("/doc.html", "<p>größer</p>".encode("latin-1"), kind="text/html; charset=utf-8")
    root = project(_web(web))
    sync.sync(root)
    assert "größer" == text(root, "doc:127.0.0.1/doc.html").strip()


def test_binary_page_is_left_out(project: Project, web: Any) -> None:
    web.serve("/doc.html", b"%PDF\0\0", kind="application/pdf")
    assert "1 files left out" in said(project(_web(web)))


def test_page_in_frames(project: Project, web: Any) -> None:
    web.serve("/doc.html", '<frameset><frame src="a/b.html"><frame src="http://elsewhere.invalid/x"></frameset>')
    web.serve("/a/b.html", '<h1>wgmma</h1><iframe src="../doc.html"></iframe>')
    root = project(_web(web))
    sync.sync(root)
    assert (["127.0.0.1/a/b.html", "127.0.0.1/doc.html"], 2) == (paths(root), len(web.requests))


@pytest.mark.parametrize("where", ["file:///etc/passwd", "ftp://x/y", "http://127.0.0.1:9/", "doc.html"])
def test_page_that_can_not_be_had(project: Project, where: str) -> None:
    assert "failed" == outcomes(project(f"name = 'doc'\nkind = 'web'\nwhere = '{where}'"))["doc"]
