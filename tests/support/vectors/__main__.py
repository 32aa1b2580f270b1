"""`python -m tests.support.vectors` writes the files of vectors; with `--check` it writes nothing
and ends with code 1 unless they are current."""

import sys

from tests.support.vectors.all import FILES
from tests.support.vectors.files import FOLDER, INDEX, index


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: scripts/vectors [--check]", file=sys.stderr)
        return 2
    texts = {file.name: file.text() for file in FILES}
    files = {**{f"{name}.json": text for name, text in texts.items()}, INDEX: index(texts)}
    there = {path.name: path.read_text() for path in FOLDER.glob("*.json")}
    wrong = sorted(
        name for name in files.keys() | there.keys() if files.get(name) != there.get(name)
    )
    if not arguments:
        FOLDER.mkdir(exist_ok=True)
        for name in wrong:
            if name in files:
                (FOLDER / name).write_text(files[name])
            else:
                (FOLDER / name).unlink()
        print(
            f"{len(files)} files, {sum(map(len, files.values())) / 1000:.0f} kB; changed: "
            f"{', '.join(wrong) or 'none'}"
        )
        return 0
    if wrong:
        print(f"not current: {', '.join(wrong)}; run scripts/vectors, and compare", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
