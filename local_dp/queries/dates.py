"""Dates in texts. One form is read, YYYY-MM-DD with or without a time of day; every other one may
mean two days, and is never compared in silence."""

import re
from contextlib import suppress
from datetime import datetime
from itertools import product

import numpy as np

from local_dp.arrays import Column

ISO = r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?)?"
_MONTH = "(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"
LOCAL = (
    r" *(?:[0-9]{1,4}/[0-9]{1,2}/[0-9]{1,4}"
    r"|[0-9]{4}[-.][0-9]{1,2}[-.][0-9]{1,2}"
    r"|[0-9]{1,2}[-.][0-9]{1,2}[-.][0-9]{4}"
    rf"|[0-9]{{1,2}}[-/. ]{_MONTH}[-/. ][0-9]{{2,4}}|{_MONTH} [0-9]{{1,2}}, [0-9]{{4}})"
    r"(?:[T, ][^\n]*)?"
)
# that a column may have; a column in %b is read by %B too
_DAYS = (
    *(form.replace("/", sign) for sign in "/.-" for form in ("%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d")),
    "%m/%d/%y",
    "%d/%m/%y",
    *(f"%d{sign}%B{sign}%{y}" for sign in "-/. " for y in "yY"),
    "%B %d, %Y",
)
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
FORMS = (
    *(day + time for time in _TIMES for day in _DAYS),
    "%Y-%m-%dT%H:%M:%SZ",
    "%Y-%m-%dT%H:%M:%S%z",
)
_FIRST = "0001"  # year


def date_of(text: str) -> np.datetime64 | None:
    """The instant, to the microsecond and without a time zone; None for a text of another form, or
    of a day that there is not."""
    if not re.fullmatch(ISO, text) or text < _FIRST:
        return None
    try:
        return np.datetime64(text, "us")
    except ValueError:
        return None


def like_a_date(text: str) -> bool:
    """True if the text is written like a date, in whatever form."""
    return re.fullmatch(LOCAL, text) is not None


def forms_of(text: str) -> dict[str, datetime]:
    """The forms that a text may have, with its date in each."""
    dates = {}
    for form, month in product(FORMS, ("%B", "%b")):
        with suppress(ValueError):
            dates[form] = datetime.strptime(text.strip(), form.replace("%B", month))
    return dates


def readings(text: str) -> list[str]:
    """The dates that a text may mean, in the form that is read."""
    dates = forms_of(text).values()
    return list(dict.fromkeys(str(date)[:19].removesuffix(" 00:00:00") for date in dates))


def date_texts(dates: Column) -> Column:
    """Each date as text, shape (n,): the day alone at midnight, fractions of a second only if there
    are some; they sort as the dates do."""
    whole = np.datetime_as_string(dates, unit="us")
    days, seconds = (dates == dates.astype(f"M8[{unit}]") for unit in "Ds")
    return np.where(days, whole.astype("U10"), np.where(seconds, whole.astype("U19"), whole))
