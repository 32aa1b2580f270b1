"""What every page that is served has in common: where, the headers that keep it to itself, and a
server that logs nothing."""

from importlib.util import find_spec
from typing import Any

from local_dp.errors import InputError

LOOPBACK = "127.0.0.1"
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


def check_installed(extra: str, *modules: str) -> None:
    """Raises InputError where a module of an extra is missing."""
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise InputError(f"the pages need {', '.join(missing)}: pip install 'local-dp[{extra}]'")
