"""What every page that is served has in common: where, the headers that keep it to itself, and a
server that logs nothing."""

import math
from importlib.util import find_spec
from typing import Any

from local_dp.errors import InputError

LOOPBACK = "127.0.0.1"
POINTS = 120  # of a history
# for uvicorn
SERVER: dict[str, Any] = {
    "lifespan": "off",
    "loop": "asyncio",
    "log_config": None,
    "access_log": False,
    "server_header": False,
}


def page_headers(script: str, style: str) -> dict[str, str]:
    """A page may run the script and use the style of these sources, fetch from its own server, and
    show pictures; nothing else, and inside no other page."""
    policy = (
        f"default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; img-src "
        "'self' data:; "
    )
    return {
        "Content-Security-Policy": policy
        + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-store",
    }


def finite(value: Any) -> float | None:
    """The number if it is finite, for JSON."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def longer(
    history: list[list[Any]], reports: int, width: float, rows: list[dict[str, Any]]
) -> list[list[Any]]:
    """The history of an interval with one more point: reports, half the widest interval, and the
    value and ends of a single estimate. Of a long one every second point is dropped."""
    row = rows[0] if len(rows) == 1 else dict.fromkeys(("value", "low", "high"))
    points = [*history, [reports, width, row["value"], row["low"], row["high"]]]
    return points if len(points) <= POINTS else [*points[:-1:2], points[-1]]


def check_installed(extra: str, *modules: str) -> None:
    """Raises InputError where a module of an extra is missing."""
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise InputError(f"the pages need {', '.join(missing)}: pip install 'local-dp[{extra}]'")
