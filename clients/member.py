"""A client role on the bus: a process with one client, or a host with many. It is silent while a
record is read: any output could reveal the record."""

import io
import logging
import os
import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager, redirect_stderr, redirect_stdout
from math import ceil

from local_dp.bus.interface import ClientBus, Connected, Delivery
from local_dp.clients.role import ClientRole
from local_dp.errors import WireError
from local_dp.sealing import Envelopes
from local_dp.wire import (
    CLIENT,
    EVERYBODY,
    End,
    Gone,
    Hello,
    Receipt,
    Request,
    Roll,
    decode,
    encode,
    topic,
)


class _Nowhere(io.TextIOBase):
    def write(self, text: str) -> int:
        return len(text)


_NOWHERE = _Nowhere()


@contextmanager
def unheard() -> Iterator[None]:
    """Drops all that is printed, warned or logged meanwhile."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stdout(_NOWHERE), redirect_stderr(_NOWHERE):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def never_heard() -> None:
    """Closes both streams of this process for good, for native code as well. Its errors go over
    another line."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)


GROUP_SIZE = 250
HOSTS = "hosts"
PATIENCE = 30.0  # seconds to reach the broker at first
# seconds from the last message to the end of the connection, since some brokers then drop
# undelivered messages
PARTING = 0.3
# seconds: a private reply leaves so long after the request, or at the multiple of it that the
# request's work calls for
SLOT = 0.1


def client_group(client: int) -> str:
    """The group of a client process: 250 to a group, so that one request serves them all and few
    are outstanding."""
    return f"g{client // GROUP_SIZE}"


def filters(run: str, group: str) -> list[str]:
    return [topic(run, "req", group), topic(run, "req", EVERYBODY)]


def will(run: str, group: str, member: str, envelopes: Envelopes) -> tuple[str, bytes]:
    """The message that the broker sends when a member's connection breaks."""
    where = topic(run, "gone", group, member)
    return where, envelopes.seal(where, encode(Gone(run=run, member=member)))


async def serve(
    role: ClientRole,
    bus: ClientBus,
    run: str,
    group: str,
    on_connected: Callable[[], Awaitable[None]] | None = None,
) -> bool:
    """Sends hello after every connection, answers requests, and gives its account when the run
    ends; it returns PARTING seconds later.

    Whether the run ended: false if the bus ended first, since nothing came for as long as it may be
    idle. Raises BusError if the broker cannot be reached at first.
    """
    hello = encode(
        Hello(run=run, member=role.member, start=role.start, stop=role.stop, private=role.private)
    )
    async with aclosing(bus.messages(PATIENCE)) as events:
        async for event in events:
            if isinstance(event, Connected):
                await bus.publish(topic(run, "hello", group, role.member), hello)
                if on_connected is not None:
                    await on_connected()
                    on_connected = None
            elif not await _handle(role, bus, run, group, event, hello):
                await bus.rest(PARTING)
                return True
    return False


async def _handle(
    role: ClientRole, bus: ClientBus, run: str, group: str, delivery: Delivery, hello: bytes
) -> bool:
    """True if the run goes on."""
    try:
        message = decode(delivery.payload, CLIENT)
    except WireError:
        return True  # not ours to answer
    if message.run != run:
        return True
    if isinstance(message, End):
        await bus.publish(topic(run, "rep", group, role.member), encode(role.account(run)))
        return False
    if isinstance(message, Roll):
        if message.calls(role.start, role.stop):
            await bus.publish(topic(run, "hello", group, role.member), hello)
    elif isinstance(message, Receipt):
        role.confirm(message)
    elif isinstance(message, Request):
        await _answer(role, bus, topic(run, "rep", group, role.member), message)
    return True


async def _answer(role: ClientRole, bus: ClientBus, where: str, request: Request) -> None:
    """Sends the role's answers: at once in a simulation; in a private run at the end of a slot that
    follows from the request, not from the time it took.

    Where a slow machine takes longer all the same, they leave at the end of the next slot.
    """
    came = bus.now()
    with unheard():
        answers = [encode(answer) for answer in role.handle(request)]
    if role.private and answers:
        took = bus.now() - came
        await bus.rest(SLOT * max(1, ceil(role.work.seconds / SLOT), ceil(took / SLOT)) - took)
    for answer in answers:
        await bus.publish(where, answer)
