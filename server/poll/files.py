"""The files of the pages of a poll, read and compressed once, and a list of their SHA-256 sums."""

import gzip
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

PAGES = Path(__file__).with_name("pages")
CLIENT = Path(__file__).resolve().parents[2] / "clients" / "web"
LISTING = "files.txt"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class File:
    """What is sent, also compressed, and its media type."""

    data: bytes
    gzip: bytes
    kind: str

    @classmethod
    def of(cls, data: bytes, kind: str) -> "File":
        return cls(data, gzip.compress(data, 9, mtime=0), kind)


def files() -> dict[str, File]:
    """All files that are served, by their path: the pages, the client under client/, and the
    list."""
    contents: dict[str, File] = {}
    for folder, prefix in ((PAGES, ""), (CLIENT, "client/")):
        for path in sorted(folder.rglob("*")):
            inside = path.relative_to(folder)
            if (
                path.suffix in _TYPES
                and path.is_file()
                and not {"node_modules", "test", "tests"} & set(inside.parts)
            ):
                contents[prefix + inside.as_posix()] = File.of(
                    path.read_bytes(), _TYPES[path.suffix]
                )
    sums = {name: sha256(file.data).hexdigest() for name, file in contents.items()}
    listing = "".join(f"{digest}  {name}\n" for name, digest in sums.items())
    return {**contents, LISTING: File.of(listing.encode(), "text/plain; charset=utf-8")}
