"""The one user of the embedded broker, and its password: a plug-in of amqtt, which imports it by name."""

import hmac
from dataclasses import dataclass

from amqtt.plugins.base import BaseAuthPlugin
from amqtt.session import Session

USER = "run"


class OnlyWithPassword(BaseAuthPlugin):  # type: ignore[misc]  # amqtt has no types
    """Lets in whoever knows the password, and nobody else."""

    async def authenticate(self, *, session: Session) -> bool:
        given = f"{session.username}:{session.password}"
        return hmac.compare_digest(given.encode(), f"{USER}:{self.config.password}".encode())

    @dataclass
    class Config:
        """What the plug-in is told."""

        password: str
