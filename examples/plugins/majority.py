"""A mechanism of the trusted curator, and the question that it answers: what most records say.

local-dp curate examples/plugins/majority.py --records fair.csv --question 'affairs > 0'
"""

from dataclasses import dataclass

from local_dp.api.declare import option
from local_dp.api.trusted import ByMechanism, Task, measured
from local_dp.curator.mechanism import Law, WithinEpsilon
from local_dp.draws import Draws
from local_dp.loss import exp_epsilon, nano_epsilon
from local_dp.protocols.local_protocol import PlainData
from local_dp.protocols.surveys.policies import Launch
from local_dp.queries.tables import Question
from local_dp.records import Records


@dataclass(frozen=True)
class NoisyMajority(WithinEpsilon[int, bool]):
    """True if more records say yes: the exponential mechanism on yes less no. Privacy: a replaced
    record moves it by 2 at most, so the odds by e^epsilon."""

    epsilon: float

    def law(self, database: int) -> Law[bool]:
        odds = exp_epsilon(nano_epsilon(self.epsilon)) ** min(abs(database) // 2, 60)
        return {database >= 0: odds.numerator, database < 0: odds.denominator}

    def release(self, database: int, draws: Draws) -> bool:
        law = self.law(database)
        return draws.below(sum(law.values())) < law[True]


@dataclass(frozen=True)
class Majority(ByMechanism[int, bool]):
    """Releases whether most records answer yes to a question."""

    name, figureless, summary = "majority", "one word", "Releases whether most records say yes"
    example = "majority --records fair.csv --question 'affairs > 0'"
    question: str = option(brief="Yes/no question about the columns")

    def task(self, table: Launch) -> Task[int, bool]:
        table.refuse_open("refuse", Question(self.question), "a table without missing values")
        return self

    def mechanism(self) -> NoisyMajority:
        return NoisyMajority(self.epsilon)

    def database(self, records: Records) -> int:
        yes = sum(int(Question(self.question).values(part).sum()) for part in records.parts())
        return 2 * yes - len(records)

    def to_data(self, result: bool, records: Records) -> PlainData:
        answer = "yes" if result else "no"
        shown = {"columns": ["most say"], "rows": [[answer]], "explanation": f"Most say {answer}."}
        return {**shown, **measured(answer)}

    def truth(self, result: bool, records: Records) -> PlainData:
        return {"margin": abs(self.database(records))}
