"""The texts of cells as numbers and truth values: how a CSV file may be written, and which columns have a decimal comma, groups of three or missing words."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from local_dp.errors import InputError
from local_dp.foreign import listed
from local_dp.queries.dates import ISO
from local_dp.records import chosen
from local_dp.storage.columns import exactly

if TYPE_CHECKING:
    import polars  # imported where it is used: it takes a third of a second

K = TypeVar("K")
SEPARATORS = {",": ",", ";": ";", "\t": "tab", "|": "|"}  # as they are typed
MISSING = r"(?i)^(na|n/a|#n/?a|#nv|null|#null!|nan|none|-|\.[a-z_]?)?$"  # in a column of numbers: R, Excel, databases, SPSS, Python, SAS and Stata
PADDED = r"^[+-]?0\d"  # a whole number with leading zeros: it may be a code
TRUTH = {"true": "1", "wahr": "1", "vrai": "1", "false": "0", "falsch": "0", "faux": "0"}  # English, German, French
_SPACES = " '\u2019\u00a0\u202f"  # between groups of three digits: French and Swiss spreadsheets
_DECIMALS = 'csv="decimal=," or csv="decimal=."'
_PART = re.compile(r"sep=(?P<sep>[,;|]|tab)|decimal=(?P<decimal>[.,])|encoding=(?P<encoding>\S+)|missing=(?P<missing>\S+)")


@dataclass(frozen=True)
class Form:
    """How a CSV file is written; empty where the file is to show it."""

    sep: str = ""
    decimal: str = ""
    encoding: str = ""
    missing: str = ""  # a text that is a missing cell, also in a column of texts

    @property
    def unsure(self) -> bool:
        """Whether all columns of numbers decide the decimal sign together."""
        return not self.decimal and self.sep not in ("", ",")

    @classmethod
    def parse(cls, text: str) -> "Form":
        """The form in a text such as "sep=; decimal=, encoding=latin-1". Raises InputError."""
        found = [_PART.fullmatch(each) for each in text.split()] if isinstance(text, str) else [None]
        if not all(found):
            raise InputError(
                f'csv is {text!r:.80}; sep is , ; | or tab, decimal is . or , and encoding and missing are words: csv="sep=; decimal=, encoding=latin-1"'
            )
        form = cls(**{name: "\t" if value == "tab" else value for part in found if part for name, value in part.groupdict().items() if value})
        try:
            "".encode(form.encoding or "utf-8")
        except (LookupError, ValueError):
            raise InputError(f'there is no encoding {form.encoding!r:.80}; give one such as csv="encoding=cp1252"') from None
        return form


def number_pattern(decimal: str) -> str:
    """The pattern of a number with this decimal sign, in groups of three or not."""
    group = ",.".replace(decimal, "") + _SPACES
    return rf"(?i)^[+-]?((\d+|[1-9]\d{{0,2}}([{group}]\d{{3}})+)([{decimal}]\d*)?(e[+-]?\d+)?|[{decimal}]\d+(e[+-]?\d+)?|inf(inity)?)$"


def _plain(texts: "polars.Expr", decimal: str, other: "polars.Expr | None" = None) -> "polars.Expr":
    """Numbers with a decimal point and without groups; all else is `other`, by default missing."""
    import polars

    group = ",.".replace(decimal, "") + _SPACES
    plain = texts.str.replace_all(f"[{group}]", "").str.replace(decimal, ".", literal=True)
    return polars.when(texts.str.contains(number_pattern(decimal))).then(plain).otherwise(other)


def declared(frame: "polars.DataFrame", kinds: Mapping[str, str], form: Form, path: Path) -> "polars.DataFrame":
    """The cells of declared numbers in the form that `polars` casts, each by itself. Raises InputError, from the header alone, where a comma may be decimal."""
    numbers = [name for name, kind in kinds.items() if kind in ("number", "whole", "truth") and name in frame.columns]
    if not form.decimal and form.sep not in ("", ",") and any(kinds[name] == "number" for name in numbers):
        raise InputError(f"{path.name!r} has separator {SEPARATORS[form.sep]!r}, so its numbers may have decimal commas; say which: {_DECIMALS}")
    cells = {name: exactly(name).str.strip_chars() for name in numbers}
    truth = {name: cell.str.to_lowercase().replace_strict(TRUTH, default=None) for name, cell in cells.items()}
    return frame.with_columns(_plain(cell, form.decimal or ".", truth[name]).alias(name) for name, cell in cells.items())


def guessed(frame: "polars.LazyFrame", form: Form, path: Path, said: list[str], only: Collection[str] | None) -> list["polars.Expr"]:
    """Of the columns `only`, those whose cells are all numbers or truth values, or missing; the others stay texts. The cells have no spaces around."""
    import polars

    names = frame.collect_schema().names()
    read = chosen(names, only)
    names, either = names if form.unsure else read, form.sep not in ("", ",") or form.decimal == ","
    points = _fits(frame, names, number_pattern("."))
    commas = _fits(frame, [name for name in names if either or name not in points], number_pattern(","))  # tried where a point does not do, or either may
    fits = {name: {sign for sign, some in ((".", points), (",", commas)) if name in some} for name in names}
    unsure = [name for name, signs in fits.items() if signs and (either or signs == {","})]
    marked = {name: fits[name] for name in _having(frame, unsure, r"\d[.,]|[.,]\d")}
    decimal = form.decimal or _decimal(marked, form, path)
    group = ",.".replace(decimal, "") + _SPACES
    numbers = [name for name in read if decimal in fits[name]]
    grouped = _having(frame, numbers, rf"\d[{group}]\d")
    plain = {name: _plain(exactly(name), decimal) if decimal == "," or name in grouped else exactly(name) for name in numbers}
    cast = {(name, kind): plain[name].cast(kind, strict=False) for name in numbers for kind in (polars.Float64, polars.Int64, polars.Int128)}
    cast |= {key: cell.fill_nan(None) for key, cell in cast.items() if key[1] == polars.Float64}  # the word nan is a missing cell
    lacks = _facts(frame, {key: cell.null_count() for key, cell in cast.items() if key[1] != polars.Int128})
    broken = [name for name in numbers if lacks[name, polars.Float64] != lacks[name, polars.Int64]]
    lacks |= _facts(frame, {(name, polars.Int128): cast[name, polars.Int128].null_count() for name in broken})
    columns = dict[str, polars.Expr]()
    for name in numbers:
        kinds = (kind for kind in (polars.Int64, polars.Int128) if lacks.get((name, kind)) == lacks[name, polars.Float64])
        columns[name] = cast[name, next(kinds, polars.Float64)]
    whole = [name for name in numbers if lacks[name, polars.Float64] in (lacks[name, polars.Int64], lacks.get((name, polars.Int128)))]
    padded = _having(frame, whole, PADDED)
    truths = _fits(frame, [name for name in read if name not in numbers], f"(?i)^({'|'.join(TRUTH)})$")
    columns |= {name: exactly(name).str.to_lowercase().replace_strict(TRUTH, default=None, return_dtype=polars.String) == "1" for name in truths}
    texts = [name for name in read if name not in columns]
    dates = _fits(frame, texts, f"^(?:{ISO})$")
    worded = _having(frame, [name for name in texts if form.sep and name not in dates], MISSING)
    words = _by_text(frame, {name: exactly(name).str.contains(MISSING) for name in worded})
    missing = _by_text(frame, {name: columns[name].is_null() for name in read if name in truths or lacks.get((name, polars.Float64))})
    others = [name for name, signs in marked.items() if name in read and decimal not in signs]
    said += ["decimal comma"] * (decimal == "," and bool(marked))
    said += [f"numbers in groups of three in {_quoted(grouped)}"] * bool(grouped)
    said += [f"leading zeros dropped in {_quoted(padded)}, and kept where a schema declares text"] * bool(padded)
    said += [f"texts in {_quoted(others)}, where the decimal sign is another"] * bool(others)
    said += [f"{text!r} missing in {_quoted(names)}" for text, names in missing.items()]
    said += [f'{text!r} a text in {_quoted(names)}, and missing with csv="missing={text}"' for text, names in words.items()]
    return [cell.alias(name) for name, cell in columns.items()]


def typed(frame: "polars.DataFrame", columns: "Sequence[polars.Expr]", only: Collection[str] | None) -> "polars.DataFrame":
    """The columns `only` of texts, some of which become `columns`."""
    return frame.select(exactly(*chosen(frame.columns, only))).with_columns(stripped(frame.lazy()).select(columns).collect())


def stripped(frame: "polars.LazyFrame") -> "polars.LazyFrame":
    import polars

    return frame.select(polars.all().str.strip_chars())


def _facts(frame: "polars.LazyFrame", asked: "Mapping[K, polars.Expr]") -> dict[K, Any]:
    """One value of each expression."""
    values = frame.select(each.alias(str(place)) for place, each in enumerate(asked.values())).collect() if asked else ()
    return dict(zip(asked, (each.item() for each in values), strict=True))


def _having(frame: "polars.LazyFrame", names: Iterable[str], pattern: str) -> list[str]:
    """The columns of which some cell has the pattern."""
    return [name for name, some in _facts(frame, {name: exactly(name).str.contains(pattern).any() for name in names}).items() if some]


def _fits(frame: "polars.LazyFrame", names: Sequence[str], pattern: str) -> list[str]:
    """The columns of which some cells are as the pattern says, and all others missing."""
    import polars

    fit = {name: exactly(name).str.contains(pattern) for name in names}
    some = _facts(frame, {name: polars.struct(fit=fit[name].sum(), all=exactly(name).count()) for name in names})
    rest = [name for name in names if 0 < some[name]["fit"] < some[name]["all"]]
    missing = _facts(frame, {name: exactly(name).filter(~fit[name]).str.contains(MISSING).all() for name in rest})
    return [name for name in names if some[name]["fit"] and missing.get(name, True)]


def _by_text(frame: "polars.LazyFrame", where: "Mapping[str, polars.Expr]") -> dict[str, list[str]]:
    """The texts in these cells, as they come, but the empty one, each with its columns."""
    import polars

    found = dict[str, list[str]]()
    for name, some in where.items():
        cells = frame.select(text=exactly(name), some=some).with_row_index("place").filter(polars.col("some") & (polars.col("text") != ""))
        first = cells.group_by("text").agg(polars.col("place").min()).sort("place")
        for text in first.collect()["text"].to_list():
            found.setdefault(text, []).append(name)
    return found


def _quoted(names: Iterable[str]) -> str:
    return listed([repr(name) for name in names])


def _decimal(fits: Mapping[str, set[str]], form: Form, path: Path) -> str:
    """The decimal sign with which all these columns are numbers. A file with commas between its cells has points. Raises InputError where two or none fit."""
    if form.sep in ("", ",") or not fits:
        return "."
    signs = set.intersection(*fits.values())
    if len(signs) == 1:
        return signs.pop()
    if signs:
        raise InputError(f"the numbers of {_quoted(fits)} in {path.name!r} can have decimals or groups of three digits; say which: {_DECIMALS}")
    points, commas = (_quoted(name for name, each in fits.items() if each == {sign}) for sign in ".,")
    raise InputError(f"in {path.name!r} the decimal sign of {points} is a point, and that of {commas} a comma; say which: {_DECIMALS}")
