"""GitHub's limits, and the caps on what a run may hand over. The first are in no API description: they are facts."""

from msgspec import Struct

COMMENT_CHARACTERS = 65_536
CHECK_CHARACTERS = 65_535  # summary and text, each
ANNOTATIONS_PER_CALL = 50
ANNOTATIONS = 10  # what GitHub shows of them without a click
STATUS_CHARACTERS = 140
ANNOTATION_CHARACTERS = 2_000
LISTED_FILES = 3_000  # GitHub lists no more of a pull request's files
MIB = 2**20


class Caps(Struct, frozen=True):
    """How much an artifact may be: the archive, what it unpacks to, its members, and how far each may expand."""

    archive_bytes: int
    total_bytes: int
    members: int
    ratio: int = 200
    free_bytes: int = MIB
    """Up to this size a member may expand as it likes: small texts compress well."""


REPORT = Caps(archive_bytes=32 * MIB, total_bytes=64 * MIB, members=1)
DUMPS = Caps(archive_bytes=512 * MIB, total_bytes=2048 * MIB, members=20_000)
EVENT_BYTES = 32 * MIB


def described(text: str) -> str:
    """The text as a commit status can hold it: whole words, the rest left out."""
    if len(text) <= STATUS_CHARACTERS:
        return text
    kept = text[: STATUS_CHARACTERS - 1].rpartition(" ")[0] or text[: STATUS_CHARACTERS - 1]
    return f"{kept}…"
