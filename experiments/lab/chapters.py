"""The chapters of the report: what each asks, and the experiment whose figure opens it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Chapter:
    """One part of the report, for a reader who does not know the field."""

    name: str
    title: str
    summary: str
    lead: str  # the experiment whose first curves open the chapter, if it was run


LOCAL_MODEL = Chapter(
    "local-model",
    "The local model",
    "No party is trusted: each person randomizes their own answer. What can still be learned, "
    "in how many rounds, and how many people does it take?",
    "masked-parity",
)
PURE_AND_APPROXIMATE = Chapter(
    "pure-and-approximate",
    "Pure and approximate privacy",
    "A curator may keep the promise always, or fail with a small probability delta. For some "
    "tasks that chance is worth any number of records.",
    "pure-or-approximate",
)
CURATOR_AND_ATTACKS = Chapter(
    "curator-and-attacks",
    "The curator, and the attacks",
    "What one trusted server can answer about its table, at which error, and the attacks "
    "which show that answers more exact would give the table away.",
    "reconstruction",
)
HEURISTICS = Chapter(
    "heuristics",
    "Heuristics",
    "Solvers for problems that are hard in the worst case, and what may be built on them when "
    "they fail, or lie.",
    "oracles",
)
FRONTIER = Chapter(
    "frontier",
    "The frontier of interaction",
    "People may be asked once, in turn, or again and again. When does that save people, by "
    "how many times, and when can it not help at all?",
    "kinds-of-interaction",
)
CHAPTERS = (LOCAL_MODEL, FRONTIER, PURE_AND_APPROXIMATE, CURATOR_AND_ATTACKS, HEURISTICS)
