"""`local-dp dimension` and `local-dp certify`: what a class costs to learn, and whether a certificate holds."""

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from experiments.cli import options
from local_dp.errors import InputError, RefusedError
from local_dp.populations.concepts import CLASSES, ConceptClass, build_class, sign_matrix

MAX_MATRIX = 1 << 26  # bytes of a file with labels


def dimension(
    name: Annotated[str, typer.Argument(metavar="CLASS", help=f"{', '.join(CLASSES)}; or a CSV file of +1 and -1, a concept a line, a point a column.")],
    d: Annotated[int, typer.Option("--d", help="The dimension of the domain.")] = 6,
    k: Annotated[int, typer.Option("--k", help="Of juntas: how many coordinates matter.")] = 3,
    epsilon: options.Epsilon = 1.0,
    success: Annotated[float, typer.Option(help="The probability with which a local learner must succeed.")] = 0.9,
    alpha: Annotated[float, typer.Option(help="The error it may have.")] = 0.1,
    as_json: options.Json = False,
) -> None:
    """Statistical-query and spectral dimensions of a class, and the number of clients that every sequentially interactive local learner of it needs."""
    from local_dp.hardness.dimensions import dimensions, local_clients

    concepts = _read_matrix(Path(name)) if Path(name).suffix.lower() == ".csv" else build_class(name, {"d": d, "k": k} if name == "juntas" else {"d": d})
    found = dimensions(concepts, np.random.default_rng(0))
    data: dict[str, Any] = {**found.describe(), "epsilon": epsilon, "success": success, "alpha": alpha}
    data["clients_at_least"] = local_clients(concepts, found, epsilon, success, alpha)
    if as_json:
        typer.echo(json.dumps(data))
        return
    table = Table(show_header=False, show_edge=False)
    exact = "" if data["sq_dimension_is_exact"] else "at least "
    for label, value in (
        ("class", f"{data['class']}: {data['concepts']} concepts on {data['points']} points"),
        ("statistical-query dimension", f"{exact}{data['sq_dimension']}"),
        ("spectral dimension, uniform prior", f"{data['spectral_uniform']:.4g}"),
        ("spectral dimension, best prior", f"{data['spectral_optimised']:.4g} (proven at most {data['spectral_at_most']:.4g})"),
        (
            "clients of any local learner that asks nobody in two rounds",
            f"at least {data['clients_at_least']:.0f} (epsilon {epsilon:g}, error {alpha:g} with probability {success:g})",
        ),
    ):
        table.add_row(label, value)
    Console().print(table)


def _read_matrix(path: Path) -> ConceptClass:
    """A class from a file of signs. Raises InputError."""
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}; give a class by name or a CSV file of +1 and -1")
    if path.stat().st_size > MAX_MATRIX:
        raise InputError(f"{path.name!r} has {path.stat().st_size} bytes; {MAX_MATRIX} is the most")
    try:
        labels = np.loadtxt(path, delimiter=",", dtype=np.int64, ndmin=2)
    except (ValueError, UnicodeDecodeError) as error:
        raise InputError(f"{path.name!r} is not a table of +1 and -1: {error}") from None
    return sign_matrix(labels)


def certify(file: Annotated[Path, typer.Argument(metavar="FILE", help="A certificate: JSON, as the experiments write it.")]) -> None:
    """Checks a certificate independently: every number in it is computed again from its queries. Exit code 4 if it does not hold."""
    from local_dp.hardness.certificates import load_certificate, verify_certificate

    if not file.is_file():
        raise InputError(f"there is no file {str(file)!r}; give a certificate")
    verdict = verify_certificate(load_certificate(file.read_text(encoding="utf-8", errors="replace")))
    if not verdict.valid:
        raise RefusedError("certificate", f"the certificate does not hold: {verdict.statement}")
    typer.echo(f"the certificate holds: {verdict.statement}")
