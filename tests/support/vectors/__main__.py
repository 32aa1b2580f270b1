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
    made = {**{f"{name}.json": text for name, text in texts.items()}, INDEX: index(texts)}
    there = {path.name: path.read_text() for path in FOLDER.glob("*.json")}
    wrong = sorted(name for name in made.keys() | there.keys() if made.get(name) != there.get(name))
    if not arguments:
        FOLDER.mkdir(exist_ok=True)
        for name in wrong:
            if name in made:
                (FOLDER / name).write_text(made[name])
            else:
                (FOLDER / name).unlink()
        print(
            f"{len(made)} files, {sum(map(len, made.values())) / 1000:.0f} kB; changed: "
            f"{', '.join(wrong) or 'none'}"
        )
        return 0
    if wrong:
        print(f"not current: {', '.join(wrong)}; run scripts/vectors, and compare", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
