"""The base of every query: a named, parametrised map from a record to a value of a declared domain."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.arrays import Ints
from local_dp.checks import check_built
from local_dp.domains import Domain, Parameter, parameters
from local_dp.errors import InputError, LocalDPError
from local_dp.records import Records


@dataclass(frozen=True)
class Query(ABC):
    """A question to one record."""

    name: ClassVar[str]

    def __post_init__(self) -> None:
        self.check()
        check_built(self.domain)

    def check(self) -> None:
        """Checks the parameters; that they make a domain is checked afterwards. Raises InputError."""
        return

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """The values it may take."""

    @abstractmethod
    def __call__(self, records: Records) -> Ints:
        """The value of each record, shape (n,)."""

    def values(self, records: Records) -> Ints:
        """The value of each record inside the domain, shape (n,): total, silent, and without a branch on what a record holds.

        A number that overflows or is missing must not show: numpy would warn for some records only, and the warning takes time that others can measure.
        Raises InputError, with the query's name, where the query itself fails; a client that answers in private hides this.
        """
        try:
            with np.errstate(all="ignore"):
                return self.domain.clip(self(records))
        except LocalDPError:
            raise
        except Exception as error:
            raise InputError(f"query {self.name!r} fails with {type(error).__name__}: {error}") from error

    def params(self) -> dict[str, Parameter]:
        return parameters(self)
