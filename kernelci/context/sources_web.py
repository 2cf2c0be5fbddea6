"""A web document and its frames: kept locally, asked for again by its own marks, carried on where it broke off."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import msgspec
from msgspec import Struct

from kernelci import whole
from kernelci.config import ContextSource
from kernelci.context import html
from kernelci.context.reading import MAX_PAGE_BYTES, LeftOut, decoded
from kernelci.context.sources import Found, SourceFailed

if TYPE_CHECKING:
    import requests

MAX_FRAMES = 32
MAX_DEPTH = 3
TIMEOUT_S = 30
_TYPES = {"text/html": ".html", "application/xhtml+xml": ".html", "text/markdown": ".md", "text/x-rst": ".rst"}


class Page(Struct, frozen=True, forbid_unknown_fields=True):
    """What is kept of a page beside its bytes."""

    url: str
    content_type: str
    charset: str
    etag: str
    modified: str
    sha256: str


def look(source: ContextSource, root: Path, folder: Path, offline: bool) -> Found:
    """The page and the frames that it is made of, of one host. Raises SourceFailed."""
    if urlsplit(source.where).scheme not in ("http", "https"):
        raise SourceFailed(f"{source.where!r} is no http(s) URL")
    store = folder / "web" / source.name
    store.mkdir(parents=True, exist_ok=True)
    pages = _pages(source.where, store, offline)
    names = _names(pages)
    marks = [(page.url, page.sha256) for page in pages]
    return Found(
        version=(pages[0].modified or pages[0].etag or pages[0].sha256[:12])[:100],
        fingerprint=repr(marks),
        files=lambda: _files(store, names),
        license=source.license or "not stated; kept locally, not to be redistributed",
        urls={name: page.url for name, page in names.items()},
        charsets={name: page.charset for name, page in names.items()},
        limit=MAX_PAGE_BYTES,
    )


def _pages(url: str, store: Path, offline: bool) -> list[Page]:
    """The page, and its frames in order, as far as they are on the same host."""
    found: dict[str, Page] = {}
    waiting = [(url, 0)]
    while waiting:
        address, depth = waiting.pop(0)
        address = address.partition("#")[0]
        if address in found or len(found) > MAX_FRAMES:
            continue
        page = found[address] = _kept(address, store) if offline else _fetched(address, store)
        if page.content_type in ("text/html", "application/xhtml+xml") and depth < MAX_DEPTH:
            frames = (urljoin(page.url, frame) for frame in _frames(page, store))
            waiting += [(frame, depth + 1) for frame in frames if urlsplit(frame)[:2] == urlsplit(url)[:2]]
    return list(found.values())


def _frames(page: Page, store: Path) -> list[str]:
    try:
        return html.frames(decoded(_body(page.url, store).read_bytes(), page.charset))
    except LeftOut:
        return []


def _names(pages: list[Page]) -> dict[str, Page]:
    """A path for each page: that of its URL, with the suffix of its type."""
    names: dict[str, Page] = {}
    for page in pages:
        parts = urlsplit(page.url)
        path = "/".join(part for part in parts.path.split("/") if part not in ("", ".", "..")) or "index"
        suffix = _TYPES.get(page.content_type, ".txt")
        name = f"{parts.hostname}/{path}"
        names[name if name.endswith(suffix) else f"{name}{suffix}"] = page
    return names


def _files(store: Path, names: dict[str, Page]) -> Iterator[tuple[str, bytes]]:
    for name, page in names.items():
        yield name, _body(page.url, store).read_bytes()


def _body(url: str, store: Path) -> Path:
    return store / f"{hashlib.sha256(url.encode()).hexdigest()[:24]}.body"


def _kept(url: str, store: Path) -> Page:
    """The page as it was kept. Raises SourceFailed."""
    page = _page(_body(url, store).with_suffix(".json"))
    if page is None or not _body(url, store).is_file():
        raise SourceFailed(f"{url} was never fetched")
    return page


def _page(path: Path) -> Page | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Page)
    except (OSError, msgspec.MsgspecError):
        return None


def _fetched(url: str, store: Path) -> Page:
    """The page as it is now: nothing is sent twice that is here, and a broken download goes on where it stopped."""
    import requests
    from urllib3.exceptions import HTTPError

    body = _body(url, store)
    known = _page(body.with_suffix(".json")) if body.is_file() else None
    part, part_mark = body.with_suffix(".part"), body.with_suffix(".mark")
    begun = part.stat().st_size if part.is_file() and part_mark.is_file() else 0
    headers = _headers(known, part_mark.read_text(encoding="utf-8") if begun else "", begun)
    try:
        with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT_S) as answer:
            if answer.status_code == 304 and known is not None:
                return known
            if answer.status_code == 416:  # what was begun is no part of what is there now
                part.unlink(missing_ok=True)
            if answer.status_code not in (200, 206):
                raise SourceFailed(f"{url}: HTTP {answer.status_code}")
            _download(answer, part, part_mark, begun if answer.status_code == 206 else 0)
            return _moved(url, answer, part, body)
    except (requests.RequestException, HTTPError) as error:
        raise SourceFailed(f"{url}: {type(error).__name__}; the next sync goes on from there") from error


def _headers(known: Page | None, mark: str, begun: int) -> dict[str, str]:
    headers = {"User-Agent": "kernelci", "Accept-Encoding": "identity"}
    if begun:
        return headers | {"Range": f"bytes={begun}-", "If-Range": mark}
    if known is not None:
        headers |= {"If-None-Match": known.etag} if known.etag else {}
        headers |= {"If-Modified-Since": known.modified} if known.modified else {}
    return headers


def _download(answer: "requests.Response", part: Path, part_mark: Path, begun: int) -> None:
    """Append to what is begun, or start anew. Raises SourceFailed where it is too large or comes short."""
    headers = answer.headers
    length = int(headers.get("Content-Length", 0) or 0)
    if begun + length > MAX_PAGE_BYTES:
        raise SourceFailed(f"{answer.url}: larger than {MAX_PAGE_BYTES // 2**20} MiB")
    mark = headers.get("ETag", "") or headers.get("Last-Modified", "")
    if mark and not mark.startswith("W/"):
        part_mark.write_text(mark, encoding="utf-8")
    else:
        part_mark.unlink(missing_ok=True)
    size = begun
    with part.open("ab" if begun else "wb") as file:
        # What has arrived is kept when the rest does not come, so no call may wait for a whole block.
        while block := answer.raw.read1(2**16):
            size += file.write(block)
            if size > MAX_PAGE_BYTES:
                break
    if size > MAX_PAGE_BYTES:
        part.unlink()
        raise SourceFailed(f"{answer.url}: larger than {MAX_PAGE_BYTES // 2**20} MiB")
    if length and size < begun + length:
        raise SourceFailed(f"{answer.url}: broke off after {size:,} bytes; the next sync goes on from there")


def _moved(url: str, answer: "requests.Response", part: Path, body: Path) -> Page:
    """What is whole takes its place."""
    headers = answer.headers
    kind, _, rest = headers.get("Content-Type", "").partition(";")
    charset = rest.partition("charset=")[2].strip(" \"'")
    digest = hashlib.sha256(part.read_bytes()).hexdigest()
    page = Page(
        str(answer.url),
        kind.strip().lower(),
        charset,
        headers.get("ETag", ""),
        headers.get("Last-Modified", ""),
        digest,
    )
    part.replace(body)
    whole.write(body.with_suffix(".json"), msgspec.json.encode(page))
    body.with_suffix(".mark").unlink(missing_ok=True)
    return page
