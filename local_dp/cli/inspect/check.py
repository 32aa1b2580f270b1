"""`local-dp audit`, `dimension`, `certify` and `bench`: checks of a randomizer, of a class and of a
certificate; and speeds."""

import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from local_dp.api.declare import argument, option
from local_dp.cli.fields import json_option, set_option, show
from local_dp.cli.main import EXIT_CODES
from local_dp.errors import InputError, RefusedError, reading
from local_dp.populations.concepts import CLASSES, ConceptClass, build_class, sign_matrix
from local_dp.text.layout import number, paragraph, screen_width
from local_dp.text.screen import SCREEN
from local_dp.text.widgets import table


@dataclass(frozen=True)
class Audit:
    """Audits a randomizer: its exact loss, its sampler and its estimates, and how exact each check
    is.

    A class of your own is run without changes. A fault is shown by two inputs, a report and the
    ratio of its probabilities; the exit code is then 4.
    """

    name: str = argument("A randomizer, or a class of your own as module:Class", metavar="NAME")
    epsilon: float = option(1.0, "Epsilon of the randomizer", metavar="E", unit="nats")
    settings: tuple[str, ...] = set_option("randomizer")
    as_json: bool = json_option("the findings")

    def __call__(self) -> int:
        SCREEN.working(f"auditing {self.name}")
        from local_dp.api.audit import audit, built, parameters_of, refuse_unknown

        refuse_unknown(self.name)
        findings = audit(built(self.name, self.epsilon, parameters_of(self.settings)))
        show(findings, self.as_json)
        return 0 if findings.holds else EXIT_CODES[RefusedError]


MAX_MATRIX = 1 << 26  # bytes of a file with labels


@dataclass(frozen=True)
class Dimension:
    """Computes a class's statistical-query dimensions, and the number of clients that every local
    learner needs, even one that asks clients repeatedly."""

    name: str = argument(
        "Class of concepts, or a CSV file",
        help=f"{', '.join(CLASSES)}; or a CSV of +1 and -1: a concept a line, a point a column",
        metavar="CLASS",
    )
    d: int = option(6, "The dimension of the domain", metavar="D", unit="bits")
    k: int = option(3, "For juntas: number of relevant coordinates", metavar="K")
    epsilon: float = option(1.0, "Privacy budget of each client", metavar="E", unit="nats")
    success: float = option(0.9, "Success probability of a local learner", metavar="P")
    alpha: float = option(0.1, "Its error", metavar="A", unit="share of the points")
    as_json: bool = json_option("the outcome")

    def __call__(self) -> None:
        from local_dp.hardness.dimensions import dimensions, local_clients

        size = {"d": self.d, "k": self.k} if self.name == "juntas" else {"d": self.d}
        concepts = (
            _read_matrix(Path(self.name))
            if Path(self.name).suffix.lower() == ".csv"
            else build_class(self.name, size)
        )
        SCREEN.working("computing the dimensions")
        numbers = dimensions(concepts, np.random.default_rng(0))
        data: dict[str, Any] = {
            **numbers.describe(),
            "epsilon": self.epsilon,
            "success": self.success,
            "alpha": self.alpha,
        }
        data["clients_at_least"] = local_clients(
            concepts, numbers, self.epsilon, self.success, self.alpha
        )
        SCREEN.tell(json.dumps(data) if self.as_json else _describe(data, screen_width()))


def _describe(data: dict[str, Any], width: int) -> str:
    exact = "" if data["sq_dimension_is_exact"] else "at least "
    uniform, best, most, epsilon, alpha, success = (
        number(data[name])
        for name in (
            "spectral_uniform",
            "spectral_optimised",
            "spectral_at_most",
            "epsilon",
            "alpha",
            "success",
        )
    )
    terms = f"(epsilon {epsilon}, error {alpha} with probability {success})"
    clients = f"at least {data['clients_at_least']:,.0f} {terms}"
    entries = [
        ("class", f"{data['class']}: {data['concepts']} concepts on {data['points']} points"),
        ("statistical-query dimension", f"{exact}{data['sq_dimension']}"),
        ("spectral dimension, uniform prior", uniform),
        ("spectral dimension, best prior", f"{best} (proven at most {most})"),
        ("clients of any local learner, however it asks", clients),
    ]
    return table(("", ""), entries, width)


def _read_matrix(path: Path) -> ConceptClass:
    """A class from a file of signs. Raises InputError."""
    if not path.is_file():
        raise InputError(
            f"there is no file {str(path)!r}; give a class by name or a CSV file of +1 and -1"
        )
    if path.stat().st_size > MAX_MATRIX:
        raise InputError(f"{path.name!r} has {path.stat().st_size} bytes; {MAX_MATRIX} is the most")
    with reading(path, "give a table of +1 and -1"):
        labels = np.loadtxt(path, delimiter=",", dtype=np.int64, ndmin=2)
    return sign_matrix(labels)


@dataclass(frozen=True)
class Certify:
    """Checks a certificate: every number in it is computed again from its queries.

    The exit code is 4 if it does not hold.
    """

    file: Path = argument("A certificate: JSON, as the experiments write it", metavar="FILE")

    def __call__(self) -> None:
        from local_dp.hardness.certificates import load_certificate, verify_certificate

        if not self.file.is_file():
            raise InputError(f"there is no file {str(self.file)!r}; give a certificate")
        SCREEN.working(f"computing every number of {self.file.name} again")
        with reading(self.file, "give a certificate that local-dp wrote"):
            verdict = verify_certificate(
                load_certificate(self.file.read_text(encoding="utf-8", errors="replace"))
            )
        if not verdict.valid:
            raise RefusedError("certificate", f"the certificate does not hold: {verdict.statement}")
        SCREEN.tell(paragraph(f"the certificate holds: {verdict.statement}", screen_width()))


HOME = "local_dp.experiments.bench"


@dataclass(frozen=True)
class Bench:
    """Measures the speeds of this machine beside references of the same run.

    Commands, tables, randomizers, client processes, stores, messages and the curator. Takes some
    five minutes.
    """

    processes: int = option(1000, "Number of client processes; 0 leaves them out", metavar="N")
    as_json: bool = json_option("the figures")
    peers: bool = option(
        False,
        "Measure other libraries instead",
        help="Speeds, variances, exact losses. Needs pip install 'local-dp[peers]'",
    )
    plot: Path | None = option(
        None, "With --peers, draw the speeds, as .png, .svg or .pdf", metavar="FILE"
    )

    def __call__(self) -> None:
        if self.plot is not None and not self.peers:
            raise InputError("--plot draws the speeds of --peers; give both")
        if find_spec(HOME) is None:
            raise InputError(
                "bench is part of the repository only: clone it, and there run pip install -e "
                "'.[peers]'"
            )
        if self.peers:
            from local_dp.api.randomizer import randomizer
            from local_dp.experiments.bench.peers import as_data, describe, peer_rows

            rows = peer_rows(randomizer, self.plot)
            SCREEN.tell(
                json.dumps(as_data(rows)) if self.as_json else describe(rows, screen_width())
            )
            return
        from local_dp.experiments.bench.cases import all_speeds, as_rows, describe_speeds

        speeds = list(all_speeds(self.processes))
        SCREEN.tell(
            json.dumps(as_rows(speeds)) if self.as_json else describe_speeds(speeds, screen_width())
        )
