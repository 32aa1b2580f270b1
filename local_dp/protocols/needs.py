"""What a protocol needs of a randomizer that is plugged in: the values that it takes, and what it
estimates."""

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.best import MAX_TABLE, report_laws
from local_dp.domains import MAX_SYMBOLS, Domain, Parameter, Vectors, symbols
from local_dp.errors import InputError, RefusedError
from local_dp.randomizers.finite import FiniteChannel, of_moments, single_estimates
from local_dp.randomizers.frequencies.base import FrequencyOracle, joint_of_reports
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.registry import RANDOMIZERS, made_for
from local_dp.tallies import Estimate, Joint, Tally

LEAST = 1e-4  # the least singular value of a channel: the inverse of a less one is noise alone


@dataclass(frozen=True)
class Deconvolution:
    """The shares of all values of a finite channel, by the least squares inverse of its channel.

    Unbiased where the laws of the reports are linearly independent; its variance grows as the
    condition of the channel.
    """

    randomizer: FiniteChannel

    @property
    def laws(self) -> Floats:
        """Pr[cell, report | value], shape (values, cells * alphabet)."""
        return report_laws(self.randomizer, np.arange(self.randomizer.domain.size))

    @cached_property
    def stands(self) -> Floats:
        """What each report adds to the shares, shape (cells * alphabet, values)."""
        return np.asarray(np.linalg.pinv(self.laws))

    def estimate(self, tally: Tally) -> Estimate:
        law = tally.counts.ravel() / tally.answered
        return of_moments(law @ self.stands, law @ self.stands**2, tally.answered)

    def joint(self, tally: Tally, weights: Floats) -> Joint:
        return joint_of_reports(tally, weights @ self.stands.T)


@dataclass(frozen=True)
class Need:
    """Averages of the values of `domain`: shares of symbols, means of vectors; with `joint` also
    their covariances, with `ones` the share of ones of two symbols, with `bit` from one bit.

    `estimates` is the quantity, as a randomizer names it; `own` are the parameters of a randomizer
    for it, if they do not follow from the domain; `others` are needs that will do as well.
    """

    domain: Domain
    joint: bool = False
    ones: bool = False
    bit: bool = False
    estimates: str = "averages"
    own: tuple[tuple[str, Parameter], ...] = ()
    others: tuple["Need", ...] = ()

    def randomizer(self, which: str, epsilon: float, protocol: str, **own: Parameter) -> Randomizer:
        """The randomizer of a protocol's parameter `randomizer`, with parameters that make it take
        these values, and `own`. Raises InputError, in one line, where it is for another purpose."""
        faults = []
        for need in (self, *self.others):
            try:
                return need._build(which, epsilon, protocol, own)
            except InputError as error:
                faults.append(error)
        raise faults[0]

    def _build(
        self, which: str, epsilon: float, protocol: str, own: dict[str, Parameter]
    ) -> Randomizer:
        needs = f"{protocol} needs {self.estimates} of {self.domain}"
        try:
            made = made_for(which, epsilon, **{**self._parameters(which), **own})
        except RefusedError as error:
            if error.code != "bad-parameters":
                raise
            raise InputError(f"{error}; {needs}") from None
        if (fault := self._fault(made)) is not None:
            raise InputError(
                f"{made.name} takes {made.domain} and estimates {made.estimates}{fault}; {needs}"
            )
        return made

    def _parameters(self, which: str) -> dict[str, Parameter]:
        """Those that make a randomizer take the values; of one that has k, k alone."""
        if self.own:
            return dict(self.own)
        if isinstance(self.domain, Vectors):
            return {"d": self.domain.d, "steps": self.domain.high}
        k = self.domain.size
        if "k" in RANDOMIZERS.resolve(which)[0].__dataclass_fields__:
            return {"k": k}
        bits, setting = (k - 1).bit_length(), (f"k={k}",)
        return {"length": bits, "intervals": k - 1, "steps": k - 1, "setting": setting}

    def _fault(self, made: Randomizer) -> str | None:
        """Why a randomizer does not fit; empty where the facts about it show that."""
        if not made.domain.takes(self.domain):
            return ""
        if self._has_estimate(made):
            return None
        if self.ones or not isinstance(made, FiniteChannel) or not _is_small(made):
            return ", without covariances" if self.joint and self._is_average(made) else ""
        rank = np.linalg.matrix_rank(Deconvolution(made).laws, tol=LEAST)
        return None if rank == self.domain.size else f", and {rank} shares at most"

    def _has_estimate(self, made: Randomizer) -> bool:
        is_bit = isinstance(made, FiniteChannel) and made.alphabet == 2 and made.cells == 1
        return (
            self._is_average(made)
            and (is_bit or not self.bit)
            and (not self.joint or isinstance(made, FrequencyOracle))
        )

    def _is_average(self, made: Randomizer) -> bool:
        if made.estimates != self.estimates or self.estimates != "averages":
            return made.estimates == self.estimates
        if made.domain == self.domain and type(made).truths is Randomizer.truths:
            # of two symbols some estimate the share of ones alone
            if isinstance(made, FiniteChannel) and made.domain.size == 2 and not self.ones:
                return bool(single_estimates(made).shape[-1] > 1)
            return True
        values = self.domain.some(64)
        truths, right = made.truths(values), self.domain.truths(values)
        return np.array_equal(truths, right[:, 1:] if self.ones else right) or (
            self.ones and np.array_equal(truths, right)
        )

    def reader(self, made: Randomizer) -> Any:
        """What estimates from the randomizer's tally: itself, or the inverse of its channel."""
        if self._has_estimate(made) or not isinstance(made, FiniteChannel):
            return made
        return Deconvolution(made)

    def variance(self, which: str, epsilon: float = 1.0) -> float | None:
        """n times the variance of an estimate, on average over all, for equally likely values:
        infinite where it has no form, None where the randomizer does not fit.

        A table decides how many symbols there are, if not the protocol: then these are 8 at most.
        """
        for need in (self, *self.others):
            if need.domain.kind == "symbols" and need.domain.size < MAX_SYMBOLS and not need.own:
                need = replace(need, domain=symbols(min(need.domain.size, 8)))
            with suppress(InputError, RefusedError):
                return need.spread(need._build(which, epsilon, "", {}))
        return None

    def spread(self, made: Randomizer) -> float:
        """The `variance` of this randomizer."""
        if self.domain.kind == "symbols" and self.domain.size > MAX_SYMBOLS:
            return math.inf  # all shares of so many symbols are no table
        values = made.domain.some(256)
        law = np.full(len(values), 1 / len(values))
        if isinstance(reader := self.reader(made), Deconvolution):
            reports = law @ reader.laws
            return float(np.mean(reports @ reader.stands**2 - (reports @ reader.stands) ** 2))
        with suppress(NotImplementedError):
            return float(np.mean(made.variance(values, law)))
        return math.inf

    def times(self, which: str, usual: Randomizer, protocol: str) -> float:
        """How many times as many clients the randomizer `which` takes as `usual`: the ratio of
        their variances; 1 for the best, and where one is not known."""
        if which == "best":
            return 1.0
        own = self.randomizer(which, usual.epsilon, protocol)
        ratio = self.spread(own) / self.spread(usual)
        return ratio if math.isfinite(ratio) else 1.0


def _is_small(channel: FiniteChannel) -> bool:
    return channel.domain.size * channel.cells * channel.alphabet <= MAX_TABLE
