"""Makes keys that sign the messages of a run, and the roster that binds keys to clients."""

import os
from dataclasses import dataclass
from pathlib import Path

from local_dp.api.declare import argument, option
from local_dp.checks import check_whole
from local_dp.clients.member import HOSTS, client_group
from local_dp.errors import InputError, reading
from local_dp.sealing import KEY, new_key, public
from local_dp.server.members import Keys, Place, Roster
from local_dp.server.mixer import NAME
from local_dp.text.screen import SCREEN

_MOST = 1 << 48
_MODE = 0o600
_PRIVATE = "private "  # begins the file of a private key; older ones have the key alone
_LENGTH = 1 << 28  # bytes of a roster, for some 3 million members
UNSIGNED_RUN = (
    "without --key this run is unsigned: anyone who reaches the broker can answer for any client"
)


@dataclass(frozen=True)
class Create:
    """Makes a private key in FILE, readable by its owner only, and its public key in FILE.pub."""

    summary = "Makes a private key and its public key"
    example = "create host-0.key"
    file: Path = argument("The private key's file, which must not exist yet", metavar="FILE")

    def __call__(self) -> None:
        key, beside = new_key(), self.file.with_name(self.file.name + ".pub")
        if beside.exists():
            raise InputError(
                f"{str(beside)!r:.80} exists and is not overwritten; give another name"
            )
        write_new(self.file, f"{_PRIVATE}{key.hex()}\n", _MODE)
        write_new(beside, public(key).hex() + "\n", 0o644)
        SCREEN.tell(public(key).hex())


@dataclass(frozen=True)
class Enrol:
    """Adds public keys to a roster, or to a new one.

    A host needs --start and --clients, a client --index, a shuffler --shuffler and --clients.
    Clients of another key are refused. A file may hold the keys of many members, one in a line:
    their places follow each other.
    """

    summary = "Adds public keys to a roster"
    example = "enrol roster.txt host-0.key.pub --start 0 --clients 500"
    roster: Path = argument("The roster's file", metavar="ROSTER")
    key: str = argument("The public key, or the file of one or more", metavar="HEX|FILE")
    start: int = option(0, "Index of a host's first client", metavar="I")
    clients: int | None = option(
        None, "Number of clients of a host, or behind a shuffler", metavar="N"
    )
    index: int | None = option(None, "Index of a single client, from 0", metavar="I")
    shuffler: bool = option(False, "The key is a shuffler's, which signs for all clients")

    def __call__(self) -> None:
        roster = read_roster(self.roster) if self.roster.exists() else Roster([])
        places = [self._place(key, place) for place, key in enumerate(public_keys(self.key))]
        fresh = self.roster.with_name(self.roster.name + ".new")
        fresh.write_text(str(Roster([*roster.places, *places])))
        os.replace(fresh, self.roster)
        first, last = places[0], places[-1]
        signs = (
            f"{first.member} signs"
            if first is last
            else f"{len(places):,} members, {first.member} to {last.member}, sign"
        )
        SCREEN.note(f"{signs} for the clients {first.start}..{last.stop - 1}")

    def _place(self, key: bytes, number: int) -> Place:
        """That of the key of this number in its file."""
        if (self.clients is None) == (self.index is None):
            raise InputError(
                "give --clients N, and for a host --start I, or give --index I for a single client"
            )
        if self.index is not None:
            index = self.index + number
            check_whole("the index", index, 0, _MOST - 1)
            return Place(f"client-{index}", client_group(index), index, index + 1, key)
        assert self.clients is not None
        start = self.start + number * self.clients
        check_whole("clients", self.clients, 1, _MOST - 1)
        check_whole("the first client", start, 0, _MOST - 1 - self.clients)
        if self.shuffler:
            return Place(NAME, NAME, 0, self.clients, key)
        return Place(f"host-{start}", HOSTS, start, start + self.clients, key)


def private_key(path: Path) -> bytes:
    """The private key in a file that only its owner can read. Raises InputError."""
    key = _from_hex(_text(path).removeprefix(_PRIVATE), f"the file {str(path)!r:.80}")
    if path.stat().st_mode & 0o077:
        raise InputError(
            f"others may read the private key {str(path)!r:.80}; chmod 600 it, or create another"
        )
    return key


def public_key(text: str) -> bytes:
    """A public key as text, or in the file of this name. Raises InputError."""
    keys = public_keys(text)
    if len(keys) > 1:
        raise InputError(f"the file {text!r:.80} has {len(keys)} keys; give that of one key")
    return keys[0]


def public_keys(text: str) -> list[bytes]:
    """A public key as text, or those in the file of this name, one in a line. Raises InputError."""
    if len(text) == 2 * KEY and not Path(text).exists():
        return [_from_hex(text, "the key")]
    lines = _text(Path(text)).split()
    if _PRIVATE.strip() in lines or Path(f"{text}.pub").exists():
        raise InputError(
            f"the file {text!r:.80} is a private key, which stays with its owner; give its public "
            "key, the .pub file"
        )
    return [
        _from_hex(line, f"line {place} of {text!r:.80}") for place, line in enumerate(lines, 1)
    ] or [_from_hex("", f"the file {text!r:.80}")]


def read_roster(path: Path) -> Roster:
    """The roster in a file. Raises InputError."""
    with reading(path, "local-dp keys enrol makes a roster"):
        return Roster.parse(_text(path))


def server_keys(key: Path | None, roster: Path | None, private: bool) -> Keys | None:
    """The keys of a server, or in a simulation none, with a note. Raises InputError."""
    if (key is None) != (roster is None):
        raise InputError(
            "--key and --roster go together: a server that signs accepts only members of its roster"
        )
    if key is None or roster is None:
        _unsigned(private)
        return None
    keys = Keys(private_key(key), read_roster(roster))
    if any(place.key == public(keys.own) for place in keys.roster.places):
        raise InputError("the roster has the server's own key; create a key for each member")
    return keys


def member_keys(key: Path | None, server_key: str, private: bool) -> tuple[bytes, bytes] | None:
    """A member's private key and its server's public key, or in a simulation none, with a note.
    Raises InputError."""
    if (key is None) != (not server_key):
        raise InputError(
            "--key and --server-key go together: a member that signs accepts only its own server"
        )
    if key is None:
        _unsigned(private)
        return None
    return private_key(key), public_key(server_key)


def _unsigned(private: bool) -> None:
    if private:
        raise InputError(
            "a private run over a broker is signed: give --key, to the server --roster, to the "
            "others --server-key (local-dp keys makes them)"
        )
    SCREEN.note(UNSIGNED_RUN)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            text = file.read(_LENGTH + 1).decode("ascii")
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot read {str(path)!r:.80}: {getattr(error, 'strerror', None) or 'it is no text'}"
        ) from None
    if len(text) > _LENGTH:
        raise InputError(f"{str(path)!r:.80} has more than {_LENGTH >> 20} MiB; split the run")
    return text


def _from_hex(text: str, where: str) -> bytes:
    try:
        key = bytes.fromhex(text.strip())
    except ValueError:
        key = b""
    if len(key) != KEY:
        raise InputError(
            f"{where} has no key of {2 * KEY} hexadecimal digits; local-dp keys create makes one"
        )
    return key


def write_new(path: Path, text: str, mode: int) -> None:
    """Writes a new file. Raises InputError for an existing one."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(
            f"{str(path)!r:.80} exists and is not overwritten; give another name"
        ) from None


KEYS: dict[str, type[Create | Enrol]] = {"create": Create, "enrol": Enrol}
