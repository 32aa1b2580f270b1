"""Theorem 5.1 of KLNRS, played: the learner it says cannot exist, and the corrected bound with its
matching family (limits 3.1, E4 and E5)."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from operator import eq
from typing import Any, Final

from numpy.random import default_rng

from local_dp.bounds.masked_parity import coset_tolerance, success_bound
from local_dp.experiments.lab.parts import (
    LOCAL_MODEL,
    Check,
    Experiment,
    Figure,
    Finding,
    LogLogFigure,
    Points,
    Rate,
    Row,
    Rows,
    Scale,
    Sheet,
    Table,
    curve,
    every,
    grid,
    measured,
    tabulate,
)
from local_dp.hardness.adversary import described
from local_dp.hardness.certificates import verify_certificate
from local_dp.interaction import run
from local_dp.masked.population import Concept, MaskedParityPopulation
from local_dp.masked.statistical import (
    MidpointOracle,
    NonadaptiveLearner,
    Spectrum,
    bent_learner,
    coset_learner,
    exact_success,
    hidden_set,
    hidden_set_certificate,
    parity_learner,
    random_learner,
    spectrum,
    two_round_learner,
)
from local_dp.oracles.statistical.oracles import (
    Bias,
    BiasedOracle,
    StatisticalQuery,
    against,
    downward,
    legal,
    upward,
)

BELOW: Final = 1 - 1e-9  # just inside the threshold tolerance
BIASES: Final[dict[str, Bias]] = {"up": upward, "down": downward, "against the sign": against}
BIASED_TARGETS: Final = 100
TOLERANCES: Final = tuple(2.0**-e * BELOW for e in (2, 3, 4, 5))
SHOWN: Final = TOLERANCES[1]  # in the figure of success: where cosets with k = 4 meet the bound
FLIP: Final = (Fraction(1), Fraction(1, 2))
FORGED_D: Final = 12  # above it one forgery is tried, as a check takes seconds
FAMILIES: Final[dict[str, Callable[[int, float, int], NonadaptiveLearner]]] = {
    "random functions": lambda d, tau, q: random_learner(d, tau, q, seed=1),
    "parities": parity_learner,
    "bent cosets, k = 4": lambda d, tau, q: coset_learner(d, tau, 4, q),
}


def printed_tolerance(d: int) -> float:
    """The tolerance 2^(-2d/3) of the printed theorem."""
    return float(2.0 ** (-2 * d / 3))


def _spectra(learner: NonadaptiveLearner, d: int) -> tuple[Spectrum, ...]:
    return tuple(spectrum(query, d) for query in learner.queries)


def _at(spectra: Iterable[Spectrum], tolerance: float) -> tuple[Spectrum, ...]:
    """The same expectations, asked for at another tolerance."""
    return tuple(
        replace(whole, query=replace(whole.query, tolerance=tolerance)) for whole in spectra
    )


class Setting(Row):
    """The exact success of a learner of q queries about the mask, beside the success that its
    hidden set certifies and the bound of the theorem."""

    d: int
    q: int
    tau: float
    success: str  # a fraction, as the next
    certified: str
    bound: float

    @classmethod
    def of(
        cls, learner: NonadaptiveLearner, spectra: tuple[Spectrum, ...], d: int, tolerance: float
    ) -> "Setting":
        queries = len(learner.queries) - d
        success = str(exact_success(learner, spectra))
        limit = str(1 - Fraction(int(hidden_set(spectra).sum()), 2 << d))
        bound = success_bound(d, queries, tolerance)
        return cls(d, queries, tolerance, success, limit, bound)

    @property
    def share(self) -> Fraction:
        """The success as a number."""
        return Fraction(self.success)

    @property
    def fineness(self) -> float:
        """Of the answers."""
        return 1 / (4 * self.tau**2)


class Verified(Row):
    valid: bool  # the checker's verdict on a certificate
    statement: str
    forgeries: int  # of the certificate
    forgeries_accepted: int  # by the checker


def _verify(certificate: dict[str, Any], *others: dict[str, Any]) -> Verified:
    """The checker's verdicts on a certificate, on forgeries of it and on `others`."""
    verdict = verify_certificate(certificate)
    verdicts = [
        verify_certificate(forgery).valid for forgery in (*_forgeries(certificate), *others)
    ]
    return Verified(verdict.valid, verdict.statement, len(verdicts), sum(verdicts))


def _forgeries(certificate: dict[str, Any]) -> list[dict[str, Any]]:
    if certificate["kind"] == "survivors":
        # the last answer is every survivor's exact expectation; 3/2 of a tolerance more is not
        # legal
        tolerance = Fraction(certificate["queries"][-1]["tolerance"])
        *answers, last = certificate["answers"]
        shift = str(Fraction(last) + Fraction(3, 2) * tolerance)
        return [
            {**certificate, "answers": [*answers, shift]},
            {**certificate, "survivors": certificate["survivors"][:1] * 2},
        ]
    digits = certificate["hidden"]
    first = f"{int(digits[:2], 16) ^ 1:02x}"  # r = 0 changes sides
    rho = Fraction(certificate["rho"]) + Fraction(1, 1 << certificate["d"])
    forgeries = [
        {**certificate, "hidden": first + digits[2:]},
        {**certificate, "rho": str(rho)},
        {**certificate, "success_at_most": "0"},
    ]
    return forgeries if certificate["d"] <= FORGED_D else forgeries[:1]


def _first_ignored(queries: tuple[StatisticalQuery, ...], d: int) -> dict[str, Any]:
    """A forgery: the last query, which reveals the mask, is put first, and the hidden set ignores
    it."""
    rest = hidden_set_certificate(queries[:-1], d)
    return {**rest, "queries": [described(queries[-1]), *rest["queries"]]}


def _targets(d: int, count: int, seed: int) -> list[Concept]:
    words = default_rng([seed, d]).integers(0, 2**63, size=(count, 2))
    return [Concept(d, int(r) % 2**d, int(a) % 2) for r, a in words]


class Certified(Row):
    settings: list[Setting]
    check: Verified  # of the certificate
    certificate: dict[str, Any]


class Printed(Row):
    """The bent learner against the midpoint oracle, at the tolerance of the printed theorem."""

    d: int

    def measure(self, seed: int) -> Certified:
        tolerance = printed_tolerance(self.d)
        learner = bent_learner(self.d, tolerance)
        setting = Setting.of(learner, _spectra(learner, self.d), self.d, tolerance)
        certificate = hidden_set_certificate(learner.queries, self.d)
        forgeable = setting.share == 1 and self.d <= FORGED_D
        others = [_first_ignored(learner.queries, self.d)] if forgeable else []
        return Certified([setting], _verify(certificate, *others), certificate)


class Wins(Row):
    wins: dict[str, int]  # concepts that are learnt, by the bias of the answers


class Biased(Row):
    """The bent learner where every answer is wrong by the whole tolerance."""

    d: int

    def measure(self, seed: int) -> Wins:
        learner, wins = bent_learner(self.d, printed_tolerance(self.d)), dict.fromkeys(BIASES, 0)
        for concept in _targets(self.d, BIASED_TARGETS, seed):
            population = MaskedParityPopulation(concept, 1, seed)
            for name, bias in BIASES.items():
                oracle = legal(BiasedOracle(population, bias), population)
                wins[name] += run(learner, oracle) == concept
        return Wins(wins)


class Sides(Row):
    settings: list[Setting]  # just below the threshold and at it
    check: Verified  # of the certificate at it


class Threshold(Row):
    """The coset family with the parameter k."""

    d: int
    k: int

    def measure(self, seed: int) -> Sides:
        threshold = coset_tolerance(self.k)
        spectra = _spectra(coset_learner(self.d, threshold, self.k), self.d)
        settings = []
        for tolerance in (threshold * BELOW, threshold):
            learner = coset_learner(self.d, tolerance, self.k)
            settings.append(Setting.of(learner, _at(spectra, tolerance), self.d, tolerance))
        return Sides(settings, _verify(hidden_set_certificate(learner.queries, self.d)))


class Settings(Row):
    settings: list[Setting]


class Sweep(Row):
    """A family of learners at several tolerances and numbers of queries."""

    d: int
    family: str

    def measure(self, seed: int) -> Settings:
        d, family = self.d, FAMILIES[self.family]
        counts = [1 << e for e in range(min(d, 7))]
        cosets = self.family == "bent cosets, k = 4"
        most = min(counts[-1], 1 << (d - 4)) if cosets else counts[-1]
        spectra = _spectra(family(d, TOLERANCES[0], most), d)
        settings = []
        for q in (q for q in counts if d + q <= len(spectra)):
            for tau in TOLERANCES:
                own = _at(spectra[: d + q], tau)
                settings.append(Setting.of(family(d, tau, q), own, d, tau))
        return Settings(settings)


class Learnt(Row):
    wins: int  # concepts that are learnt
    queries: int
    check: Verified | None  # of the certificate of an oracle whose queries are fixed in advance


class TwoRounds(Row):
    """The learner of two rounds against the same oracle, for each of the 2^(d+1) concepts."""

    d: int

    def measure(self, seed: int) -> Learnt:
        concepts = [Concept(self.d, r, a) for r in range(1 << self.d) for a in (0, 1)]
        learner = two_round_learner(self.d)
        oracles = (MidpointOracle(self.d, concept.r, concept.a) for concept in concepts)
        hypotheses = (run(learner, oracle) for oracle in oracles)
        wins = sum(map(eq, hypotheses, concepts))
        (concept,) = _targets(self.d, 1, seed)
        oracle = MidpointOracle(self.d, concept.r, concept.a)
        # these queries are fixed in advance, so they cannot aim at r
        run(parity_learner(self.d, 0.9 / (2 * self.d), 1), oracle)
        certificate = oracle.certificate()
        return Learnt(wins, self.d + 1, _verify(certificate) if certificate else None)


class Theorem51(Experiment):
    name = "theorem-5.1"
    chapter = LOCAL_MODEL
    title = (
        "A published impossibility theorem, refuted by running the impossible learner, and repaired"
    )
    claim = (
        "A masked parity hides one bit behind a string r of d bits. The paper says that "
        "statistical queries chosen in advance need about 2^d of them to learn it at the "
        "tolerance 2^(-2d/3). In fact d + 1 are enough for even d from 8 on. What is true: q "
        "queries of tolerance tau succeed with probability at most 1/2 + q / (8 tau^2 2^d), and a "
        "family of learners meets that. Two rounds need d + 1 queries and only the tolerance "
        "1/(2d)."
    )
    source = (
        "Kasiviswanathan et al. 2008, Theorem 5.1; refuted and corrected (limits 3.1, E4 and E5)"
    )

    def points(self, scale: Scale) -> Points:
        full = scale == "full"
        cosets = ((8, 0), (10, 2), (12, 4)) if full else ((8, 2), (10, 6))
        dimensions = (4, 8, 9, 10, 12, 16) if full else (4, 8, 10, 16)
        sizes, rounds = ((6, 8, 10), (8, 10)) if full else ((6, 8), (8,))
        thresholds = (Threshold(d, k) for d, least in cosets for k in range(least, d + 1, 2))
        return [
            *map(Printed, dimensions),
            *map(Biased, (4, 8, 10, 16, 20, 32)),
            *thresholds,
            *grid(Sweep, sizes, FAMILIES),
            *map(TwoRounds, rounds),
        ]

    def finding(self, sheet: Sheet) -> Finding:
        bents, biases, thresholds = sheet[Printed], sheet[Biased], sheet[Threshold]
        sweep, rounds = sheet[Sweep], sheet[TwoRounds]
        settings = [setting for _, m in (*bents, *thresholds, *sweep) for setting in m.settings]
        verdicts = [m.check for _, m in (*bents, *thresholds, *rounds) if m.check]
        checks = [
            _refutation_check(bents, biases),
            _loss_check(bents, biases),
            _bound_check(settings),
            _tightness_check(thresholds),
            _certificate_check(verdicts),
            _two_round_check(rounds),
        ]
        certificates = {f"certificate bent d {p.d}": m.certificate for p, m in bents}
        figures = [_frontier_figure(bents, thresholds), _success_figure(sweep)]
        headline = _headline(bents, settings)
        return Finding(checks, [_table(bents)], figures, [_NOTE], certificates, headline=headline)


_NOTE = (
    "Success is exact against the midpoint oracle: every one of the 2^(d+1) concepts is played. "
    "The counts leave out the d queries for r, which reveal nothing about a. The midpoint oracle "
    "answers these exactly. At tolerances of 1/(2d) and more, other oracles can hide r as well. "
    "With d in {4, 8, 16}, d is a power of two, as the paper asks. The examples are uniform: "
    "learning under every distribution would contain parity."
)


def _table(bents: Rows[Printed, Certified]) -> Table:
    successes: list[tuple[Any, ...]] = []
    for _, m in bents:
        for s in m.settings:
            queries = s.q + s.d, 2**s.d - 1
            successes.append((s.d, *queries, s.tau, s.success, m.check.statement))
    return tabulate(
        "The bent learner against the midpoint oracle",
        "d | queries asked | queries the printed theorem demands | tolerance 2^(-2d/3) | "
        "success | what the certificate proves",
        successes,
    )


def _headline(bents: Rows[Printed, Certified], settings: list[Setting]) -> str:
    """The largest dimension in which every concept was played."""
    d, success = max((p.d, float(m.settings[0].share)) for p, m in bents)
    over = sum(setting.share > setting.bound * (1 + 1e-12) for setting in settings)
    return (
        f"At d = {d} the learner that the printed theorem rules out learns {success:.0%} of all "
        f"concepts; of {len(settings)} learners played over all concepts {over} exceed the "
        "corrected bound."
    )


def _refutation_check(bents: Rows[Printed, Certified], biases: Rows[Biased, Wins]) -> Check:
    successes = {p.d: m.settings[0].share for p, m in bents if p.d >= 8}
    wins = [each for p, m in biases if p.d >= 8 for each in m.wins.values()]
    win_rate = Rate(sum(wins), BIASED_TARGETS * len(wins))
    shares = ", ".join(f"{float(share):.3f} at d = {d}" for d, share in successes.items())
    return measured(
        "At the printed theorem's own tolerance 2^(-2d/3), the bent learner's fixed d + 1 queries "
        "(d + 2 for odd d) learn every concept, d >= 8",
        {"drawn concepts, every answer tau wrong, for d up to 32": win_rate},
        1,
        more=f"success {shares} against the midpoint oracle, over all concepts",
        also=set(successes.values()) == {1},
    )


def _loss_check(bents: Rows[Printed, Certified], biases: Rows[Biased, Wins]) -> Check:
    small = [m.settings[0].share for p, m in bents if p.d == 4]
    wins = [m.wins["against the sign"] for p, m in biases if p.d == 4]
    win_rate = Rate(sum(wins), BIASED_TARGETS * len(wins))
    return measured(
        "At d = 4 the same learner loses, as the condition 2^(-2d/3) < 2^(-d/2 - 1) says it should",
        {"wins where every answer is tau closer to the wrong sign": win_rate},
        high=0,
        more=f"success {', '.join(map(str, small))} against the midpoint oracle",
        also=max(small) <= Fraction(1, 2),
    )


def _bound_check(settings: list[Setting]) -> Check:
    same, over = True, 0
    for setting in settings:
        formula = 0.5 + setting.q / (8 * setting.tau**2 * 2.0**setting.d)
        same &= abs(setting.bound - min(1.0, formula)) <= 1e-12
        limit = Fraction(setting.certified)
        beyond = float(limit) > setting.bound * (1 + 1e-12)
        over += setting.share > limit or beyond
    return Check(
        "No non-adaptive learner exceeds its certified success, nor the corrected bound 1/2 + q / "
        "(8 tau^2 2^d)",
        same and over == 0,
        f"{len(settings)} triples (d, tau, q) played over all concepts, {over} above the "
        "certificate or the bound",
    )


def _tightness_check(thresholds: Rows[Threshold, Sides]) -> Check:
    flips = [tuple(setting.share for setting in m.settings) == FLIP for _, m in thresholds]
    below = [(p.d, m.settings[0]) for p, m in thresholds]
    ratios = [setting.q * setting.fineness / 2**d for d, setting in below]
    meets = all(abs(ratio - 1) < 1e-6 for ratio in ratios)
    return Check(
        "The bound is tight: against the midpoint oracle, 2^(d-k) bent-coset queries always "
        "succeed just below the tolerance 2^(-k/2-1), where 4 tau^2 2^d = 2^(d-k), and guess a at "
        "it",
        all(flips) and meets,
        f"{sum(flips)} of {len(flips)} pairs (d, k) flip from 1 to 1/2 exactly there",
    )


def _certificate_check(verdicts: list[Verified]) -> Check:
    valid = sum(each.valid for each in verdicts)
    forgeries = sum(each.forgeries for each in verdicts)
    accepts = sum(each.forgeries_accepted for each in verdicts)
    return Check(
        "Every certificate passes the independent checker, and no forgery of one does",
        valid == len(verdicts) and forgeries > 0 == accepts,
        f"{valid} of {len(verdicts)} certificates verified; {accepts} of {forgeries} forgeries "
        "accepted",
    )


def _two_round_check(rounds: Rows[TwoRounds, Learnt]) -> Check:
    cases = []
    for p, m in rounds:
        size = 2 << p.d
        cases.append((m.wins == size, f"{m.wins:,} of {size:,} at d = {p.d}"))
    return every(
        "With two rounds, d + 1 queries at nine tenths of the tolerance 1/(2d) learn every concept "
        "against the same oracle",
        cases,
    )


def _frontier_figure(bents: Rows[Printed, Certified], thresholds: Rows[Threshold, Sides]) -> Figure:
    curves = []
    for d in sorted({p.d for p, _ in thresholds}):
        below = [m.settings[0] for p, m in thresholds if p.d == d]
        flips = [(setting.q, setting.fineness) for setting in below]
        most, steps = max(flips)[0], 2.0**d
        frontier = [(1, steps), (most, steps / most)]
        curves.append(curve(f"bent cosets, d = {d}", flips))
        curves.append(curve(f"q / (4 tau^2) = 2^{d}", frontier, "bound"))
    wins = ((s.q, s.fineness) for _, m in bents for s in m.settings if s.share == 1)
    curves.append(curve("bent learner at 2^(-2d/3)", wins))
    title = "The frontier of non-adaptive learning: certain success on and above each line"
    axes = "queries q about the mask", "1 / (4 tau^2), the fineness of the answers"
    return LogLogFigure("frontier", title, *axes, curves, "one-round")


def _success_figure(sweep: Rows[Sweep, Settings]) -> Figure:
    d = max(p.d for p, _ in sweep)
    curves = []
    for p, m in sweep:
        if p.d == d:
            points = ((s.q, float(s.share)) for s in m.settings if s.tau == SHOWN)
            curves.append(curve(p.family, points))
    bound = ((float(q), success_bound(d, q, SHOWN)) for q in range(1, 65))
    curves.append(curve("corrected bound", bound, "bound"))
    title = f"Success of non-adaptive learners at d = {d}, tau = {SHOWN:.3f}"
    axes = "queries q about the mask", "success"
    return Figure("success", title, *axes, curves, "one-round")


EXPERIMENT = Theorem51()
