"""A whole poll: people join over WebSocket, the server counts exactly the bits that they sent, and estimates from them."""

import asyncio
from pathlib import Path

from local_dp.experiments.poll.results import data_of
from tests.support.runs.polls import THREE, Person, plan, serving


def _bits(reports: dict[str, list[object]]) -> dict[object, object]:
    return dict(zip(reports["places"], reports["reports"], strict=True))


def test_the_server_counts_the_bits_that_were_sent(tmp_path: Path) -> None:
    """Twelve people answer three questions: each report that is counted is the one sent, and the estimate is the decoder's of these reports."""

    async def play() -> None:
        people = [Person.of(place % 2, "green", place / 2) for place in range(12)]
        async with serving(tmp_path, plan()) as served:
            answering = [asyncio.create_task(person.answer(served.link)) for person in people]
            await served.until(12, 12, 12)
            counted = [_bits(served.poll.reports(place)) for place in range(3)]
            result = await served.close()
            await asyncio.gather(*answering)
        for person in people:
            for place, sent in enumerate(person.reports()):
                assert int(str(counted[place][person.place["start"]]), 2) == int.from_bytes(sent, "little")
            assert person.role is not None
            assert person.role.confirmed == {(result.plan.run, 1)}
        assert (result.joined, result.accounts.silent, result.accounts.accepted_not_charged) == (12, 0, 0)
        data = data_of(result)
        for question, part, found in zip(THREE.questions, result.round.parts, data["questions"], strict=True):
            estimate = question.algorithm(100).decode((part.tally(),))
            assert [row["value"] for row in found["estimates"]] == [float(value) for value in estimate.value.reshape(-1)]
            assert found["answered"] == 12

    asyncio.run(play())
