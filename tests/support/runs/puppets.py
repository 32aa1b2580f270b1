"""Members as the network sees them: scripted ones, and real client roles."""

from local_dp.wire import Reply
from tests.support.inputs.builders import RUN


def reply_of(round: int, member: str, start: int, reports: bytes, ask: int = 0) -> Reply:
    return Reply(run=RUN, round=round, member=member, ask=ask, start=start, width=1, reports=reports)
