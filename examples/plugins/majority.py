"""A mechanism of the trusted curator, and the question that it answers: what most records say.

local-dp curate examples/plugins/majority.py --records fair.csv --question 'affairs > 0'
"""

from dataclasses import dataclass
from math import floor
from typing import ClassVar

from local_dp.api.declare import option
from local_dp.api.trusted import ByMechanism, Task, measured
from local_dp.curator.mechanism import Law, WithinEpsilon
from local_dp.draws import Draws
from local_dp.loss import exp_epsilon, nano_epsilon
from local_dp.protocols.local_protocol import PlainData
from local_dp.protocols.surveys.policies import Launch
from local_dp.queries.tables import Question
from local_dp.records import Records

SCALE, MOST = 1 << 40, 60


@dataclass(frozen=True)
class NoisyMajority(WithinEpsilon[tuple[int, int], bool]):
    """True if more records say yes: the exponential mechanism on (no, yes). Privacy: a replaced
    record moves yes less no by 2 at most, so the odds by e^epsilon."""

    summary: ClassVar[str] = "Releases whether most records say yes"
    epsilon: float

    def law(self, database: tuple[int, int]) -> Law[bool]:
        no, yes = database
        growth, likelier = exp_epsilon(nano_epsilon(self.epsilon)), SCALE
        for _ in range(min(abs(yes - no) // 2, MOST)):
            likelier = floor(likelier * growth)  # rounded towards privacy
        return {yes >= no: likelier, yes < no: SCALE}

    def release(self, database: tuple[int, int], draws: Draws) -> bool:
        law = self.law(database)
        return draws.below(sum(law.values())) < law[True]


@dataclass(frozen=True)
class Majority(ByMechanism[tuple[int, int], bool]):
    """Releases whether most records answer yes to a question."""

    name: ClassVar[str] = "majority"
    summary: ClassVar[str] = "Releases whether most records say yes"
    example: ClassVar[str] = "majority --records fair.csv --question 'affairs > 0'"
    figureless: ClassVar[str] = "one word"
    question: str = option(brief="Yes/no question about the columns", metavar="TEXT")

    def task(self, table: Launch) -> Task[tuple[int, int], bool]:
        table.refuse_open("refuse", Question(self.question), "a table without missing values")
        return self

    def mechanism(self) -> NoisyMajority:
        return NoisyMajority(self.epsilon)

    def database(self, records: Records) -> tuple[int, int]:
        yes = sum(int(Question(self.question).values(part).sum()) for part in records.parts())
        return len(records) - yes, yes

    def to_data(self, result: bool, records: Records) -> PlainData:
        answer = "yes" if result else "no"
        return {
            "columns": ["most say"],
            "rows": [[answer]],
            "explanation": f"Most records say {answer} to {self.question!r}.",
            **measured(answer),
        }

    def truth(self, result: bool, records: Records) -> PlainData:
        no, yes = self.database(records)
        return {"records_that_say_so": yes if result else no}
