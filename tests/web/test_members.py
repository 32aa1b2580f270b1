"""Members in JavaScript in whole runs: over Mosquitto's WebSocket, signed and not, in Node and as
pages of a browser."""

import asyncio
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from local_dp.bus.address import Address
from local_dp.oracles.local.asked import chunk_digest, round_digest
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.sealing import public
from local_dp.server.remote import Journal
from local_dp.simulation.outcome import Outcome
from local_dp.simulation.over_bus import serve_run
from tests.support.inputs.builders import RUN
from tests.support.runs.brokers import Mosquitto, free_port, mosquitto, needs_mosquitto
from tests.support.runs.browser import browser, needs_chromium
from tests.support.runs.parties import CLIENTS, PEOPLE, ROUNDS, Cast, digests, settings
from tests.support.web import needs_node, node, served


@contextmanager
def broker(folder: Path) -> Iterator[tuple[Mosquitto, str]]:
    """A Mosquitto that listens on a WebSocket too, and the address of that."""
    port = free_port()
    with mosquitto(
        folder, f"listener {port} 127.0.0.1", "protocol websockets", "allow_anonymous true"
    ) as listening:
        yield listening, f"ws://127.0.0.1:{port}"


def serve(cast: Cast, server: str, folder: Path) -> Outcome:
    """The server's part of a run, with a journal: only what is stored is confirmed."""
    run = replace(settings(broker=server), override=cast.algorithm())
    with closing(Journal.begin(folder, RUN, {})) as journal:
        return asyncio.run(
            serve_run(
                run,
                RUN,
                Address.parse(server),
                60.0,
                lambda progress: None,
                journal=journal,
                keys=cast.keys,
            )
        )


def described(cast: Cast, url: str) -> dict[str, Any]:
    """The run and its members for a program in JavaScript."""
    records = PEOPLE.batch(0, CLIENTS)
    members = [
        {
            "member": each.place.member,
            "group": each.place.group,
            "start": each.place.start,
            "key": each.own.hex(),
            "yes": int(records["yes"][each.place.start]),
        }
        for each in cast.members
    ]
    return {
        "url": url,
        "run": RUN,
        "server": public(cast.server).hex() if cast.signed else "",
        "members": members,
    }


def check(outcome: Outcome, lives: list[dict[str, Any]]) -> None:
    """The server has counted the reports that the members say they sent, each once; every account
    is that of the server."""
    assert len(lives) == CLIENTS
    for life in lives:
        assert life["refused"] == []
        assert life["account"] == [[number, 1] for number in range(1, ROUNDS + 1)]
        assert life["confirmed"] == list(range(1, ROUNDS + 1))
    for number, digest in enumerate(digests(outcome.rounds), 1):
        reports = np.array([life["answers"][str(number)][0] for life in lives], dtype=np.uint8)
        assert digest == round_digest([chunk_digest(BinaryRR(1.0), reports)])


@needs_mosquitto
@needs_node
@pytest.mark.long
@pytest.mark.parametrize("signed", [True, False])
def test_members_in_node_answer_a_run(signed: bool, tmp_path: Path) -> None:
    cast = Cast.of(signed, members=CLIENTS)
    with broker(tmp_path) as (server, url), ThreadPoolExecutor() as beside:
        outcome = beside.submit(serve, cast, server.url, tmp_path)
        lives = node("members.mjs", data=described(cast, url))
        check(outcome.result(), lives)


@needs_mosquitto
@needs_node
@pytest.mark.long
def test_members_outlive_their_broker(tmp_path: Path) -> None:
    """The broker is killed while half of the members wait for the others, and started again:
    nothing is lost, nothing counts twice."""
    cast = Cast.of(members=CLIENTS)
    with broker(tmp_path) as (server, url), ThreadPoolExecutor() as beside:
        outcome, cast_data = beside.submit(serve, cast, server.url, tmp_path), described(cast, url)
        halves = [
            {**cast_data, "members": cast_data["members"][at : at + CLIENTS // 2]}
            for at in (0, CLIENTS // 2)
        ]
        first = beside.submit(node, "members.mjs", data=halves[0])
        time.sleep(3.0)
        server.restart()
        lives = node("members.mjs", data=halves[1])
        check(outcome.result(), [*first.result(), *lives])


@needs_mosquitto
@needs_chromium
@pytest.mark.long
def test_members_in_a_page_answer_a_run(tmp_path: Path) -> None:
    """Signed, with each member's ledger in the browser's database, under a policy that allows no
    other source."""
    cast = Cast.of(members=CLIENTS)
    with (
        broker(tmp_path) as (server, url),
        ThreadPoolExecutor() as beside,
        served() as address,
        browser() as tab,
    ):
        outcome = beside.submit(serve, cast, server.url, tmp_path)
        tab.go(address)
        program = (
            "import('/tests/web/page-members.mjs').then(page => "
            f"page.result({json.dumps(described(cast, url))})).then(JSON.stringify)"
        )
        lives = json.loads(tab.evaluate(program))
        check(outcome.result(), lives)
        assert tab.errors == []


@needs_chromium
def test_pages_of_one_browser_share_one_truth() -> None:
    """Three pages asked at once give the bytes of the first, and pay once; so it is after a reload.
    Another request is refused, and the budget ends for all."""
    with served() as address, browser() as tab:

        def page(what: str) -> Any:
            return tab.evaluate(
                f"import('/tests/web/page-members.mjs').then(page => page.{what}())"
            )

        tab.go(address)
        first = page("first")
        assert len(set(first["told"])) == 1
        assert first["spent"] == 1_000_000_000
        tab.go(address + "?reloaded", "true")
        assert page("again") == {"told": [first["told"][0], "equivocation"], "spent": 1_000_000_000}
        beyond = page("beyond")
        assert sorted(answer == "budget" for answer in beyond["told"]) == [False, True, True]
        assert beyond["spent"] == 2_000_000_000
        assert len(page("account")) == 2
        assert tab.errors == []


@pytest.mark.long
@needs_chromium
def test_one_page_of_a_browser_is_connected() -> None:
    """A second page with the same member waits until the first is closed, and takes its place."""
    with served() as address, browser() as tab:
        tab.go(address)
        assert tab.evaluate("import('/tests/web/page-members.mjs').then(page => page.twice())") == [
            "connecting",
            "elsewhere",
            "connecting",
        ]
