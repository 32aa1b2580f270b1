"""A server with receivers: processes that each take a share of the clients, beside one
coordinator."""

import asyncio
import math
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from local_dp.bus.address import Address
from local_dp.bus.broker import EmbeddedBroker
from local_dp.bus.children import Folder
from local_dp.checks import check_whole
from local_dp.clients.member import GROUP_SIZE, client_group
from local_dp.errors import InputError
from local_dp.sealing import new_key, public
from local_dp.server.losses import Loss
from local_dp.server.members import Keys, Place, Roster
from local_dp.server.pace import Pace
from local_dp.server.phases import parting
from local_dp.server.progress import Turnout
from local_dp.server.quorum import Terms
from local_dp.server.receiver import GROUP, ReceiverConfig, ReceiverProcess, reconciled
from local_dp.server.remote import Journal
from local_dp.simulation.outcome import Outcome
from local_dp.simulation.over_bus import end, serve_run
from local_dp.simulation.settings import OnProgress, Settings
from local_dp.wire import Span, behind

FOLDER = ".receivers"  # the name of the folder of a run's receivers, after that of the run
# times the deadline of a round, after which the server stops waiting for its receivers: one may be
# started again
_LATER = 4
_NEARLY, _ENDING = (
    2.0,
    60.0,
    # seconds that a receiver may take to end, beside its wait for accounts: one that heard the end,
    # and one that is started again
)


def shares(clients: int, receivers: int) -> list[Span]:
    """Equal numbers of whole groups for each. Raises InputError for more receivers than groups."""
    groups = -(-clients // GROUP_SIZE)
    if receivers > groups:
        raise InputError(
            f"receivers is {receivers}; give at most {groups}, one for each {GROUP_SIZE} clients"
        )
    check_whole("receivers", receivers, 1, groups)
    return [
        (
            GROUP_SIZE * (groups * at // receivers),
            min(clients, GROUP_SIZE * (groups * (at + 1) // receivers)),
        )
        for at in range(receivers)
    ]


async def serve_by_receivers(
    settings: Settings,
    run: str,
    url: str,
    joining: float,
    on_progress: OnProgress,
    journal: Journal,
    folder: Path,
    receivers: int,
    keys: Keys | None,
) -> Outcome:
    """As `serve_run`, of client processes, whose broker is at `url`. The receivers reach the server
    over a broker of its own, which nobody else can join.

    Raises also BusError where a receiver cannot be kept alive, and InputError where one has no
    certificate for the clients' broker.
    """
    spans, given, home = (
        shares(settings.population.size, receivers),
        settings.terms,
        folder / (run + FOLDER),
    )
    own, names = [new_key() for _ in spans], [f"receiver-{at}" for at in range(receivers)]
    urls = [_joined_by(name, url) for name in names]
    places = [
        Place(name, GROUP, *span, public(key))
        for name, key, span in zip(names, own, spans, strict=True)
    ]
    with Folder() as private:
        broker = EmbeddedBroker(Path(private))
        processes = [
            ReceiverProcess(
                ReceiverConfig(
                    run=run,
                    broker=theirs,
                    server_broker=broker.url,
                    name=place.member,
                    start=place.start,
                    stop=place.stop,
                    groups=[
                        client_group(client)
                        for client in range(place.start, place.stop, GROUP_SIZE)
                    ],
                    coin_seed=settings.randomness.coin_seed,
                    deadline=given.deadline,
                    grace=None if math.isinf(given.grace) else given.grace,
                    joining=joining,
                    folder=str(home / place.member),
                    key="" if keys is None else key.hex(),
                    server_key="" if keys is None else keys.own.hex(),
                    roster="" if keys is None else _members(keys.roster, place),
                )
            )
            for theirs, key, place in zip(urls, own, places, strict=True)
        ]
        longest = min(
            86_400.0, _LATER * (given.deadline or Pace().deadline(settings.population.size))
        )
        # one that died before a round is waited for, too
        played = replace(settings, terms=Terms(longest, given.quorum, grace=longest))
        kept: list[asyncio.Task[dict[str, Any]]] = []
        try:
            await broker.start()
            for process in processes:
                await process.start()
            kept = [asyncio.create_task(process.record()) for process in processes]
            address, wait = Address.parse(broker.url), 2 * joining + _ENDING
            behind_keys = None if keys is None else Keys(keys.own, Roster(places))
            outcome = await serve_run(
                played,
                behind(run),
                address,
                wait,
                on_progress,
                broker.watch(),
                _lost(kept),
                journal=journal,
                keys=behind_keys,
            )
            for process in processes:
                process.over = True
            await asyncio.wait(
                kept, timeout=_NEARLY + max(parting(stop - start) for start, stop in spans)
            )
            for process, task in zip(processes, kept, strict=True):
                # it was being started as the run ended, and did not hear that: the next one knows
                if not task.done():
                    await process.stop()
            done, _ = await asyncio.wait(kept, timeout=_ENDING)
        finally:
            await end(kept)
            for process in processes:
                await process.stop()
            await broker.stop()
    shutil.rmtree(home, ignore_errors=True)  # the server's journal has all
    return with_records(outcome, [task.result() for task in done])


def _joined_by(name: str, url: str) -> str:
    """The address of the clients' broker for a receiver: where the server has a certificate, with
    its own from the same folder."""
    address = Address.parse(url)
    if address.cert is None:
        return url
    own = Path(address.cert).with_name(f"{name}.pem")
    if not own.is_file():
        raise InputError(
            f"there is no certificate {str(own)!r}; make one of the name {name}, as "
            "docs/deployment.md shows"
        )
    return f"{url.partition('?')[0]}?{'' if address.ca is None else f'ca={address.ca}&'}cert={own}"


def _members(roster: Roster, share: Place) -> str:
    return str(Roster(place for place in roster.places if share.start <= place.start < share.stop))


async def _lost(kept: Sequence["asyncio.Task[dict[str, Any]]"]) -> None:
    """Waits until a receiver cannot be kept alive, and raises what it says."""
    done, _ = await asyncio.wait(kept, return_when=asyncio.FIRST_EXCEPTION)
    for task in done:
        task.result()


def with_records(outcome: Outcome, records: Sequence[Mapping[str, Any]]) -> Outcome:
    """The outcome of the coordinator with what the receivers know of their members."""
    assert outcome.bus is not None
    seen = sum((Turnout(**record["counts"]) for record in records), Turnout())
    counts = replace(
        outcome.counts, late=seen.late, duplicate=seen.duplicate, conflicting=seen.conflicting
    )
    rejections, silenced = (
        dict(
            sum((Counter(record[name]) for record in records), Counter(getattr(outcome.bus, name)))
        )
        for name in ("rejections", "silenced")
    )
    losses = tuple(
        Loss(**{**loss, "lost": tuple(loss["lost"])})
        for record in records
        for loss in record["losses"]
    )
    bus = replace(
        outcome.bus,
        rejections=rejections,
        silenced=silenced,
        reconciliation=reconciled(records),
        losses=losses,
        forged=outcome.bus.forged + sum(record["forged"] for record in records),
    )
    return replace(outcome, counts=counts, bus=bus)
