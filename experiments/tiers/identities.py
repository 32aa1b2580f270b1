"""Who is who in a run that one command starts: everybody's key, made for this run alone, and the rosters that bind the keys to clients."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from local_dp.clients.member import HOSTS, client_group
from local_dp.experiments.tiers.settings import Settings
from local_dp.sealing import new_key, public
from local_dp.server.mixing import NAME
from local_dp.server.roster import Keys, Place, Roster
from local_dp.wire import Span


@dataclass(frozen=True)
class Identities:
    """The members' places and private keys, and the keys of who asks them: the server, or a shuffler, which is then the server's only member."""

    places: Sequence[Place]
    own: Sequence[bytes]
    server: Keys
    shuffler: Keys | None

    @classmethod
    def of(cls, settings: Settings, spans: Sequence[Span]) -> "Identities":
        """New ones."""
        own = [new_key() for _ in spans]
        places = [_place(settings.tier == "hosts", index, span, public(key)) for index, (span, key) in enumerate(zip(spans, own, strict=True))]
        asker = Keys(new_key(), Roster(places))
        if settings.behind is None:
            return cls(places, own, asker, None)
        return cls(places, own, Keys(new_key(), Roster([Place(NAME, NAME, 0, settings.clients, public(asker.own))])), asker)

    @cached_property
    def _asker(self) -> bytes:
        """The public key of who asks the members."""
        return public((self.shuffler or self.server).own)

    def keys_of(self, index: int) -> tuple[bytes, bytes]:
        """What the member `index` is given: its private key, and the public one of who asks it."""
        return self.own[index], self._asker


def _place(is_host: bool, index: int, span: Span, key: bytes) -> Place:
    name, group = (f"host-{index}", HOSTS) if is_host else (f"client-{index}", client_group(index))
    return Place(name, group, *span, key)
