"""A question about a graph, given as a table of edges."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from local_dp.curator.mechanism import Mechanism
from local_dp.curator.sensitivity.triangles import LadderTriangles, Triangles
from local_dp.errors import InputError
from local_dp.experiments.api.declare import option
from local_dp.experiments.api.trusted import ByMechanism
from local_dp.loss import Loss
from local_dp.populations.graphs import Graph
from local_dp.queries.tables import labels_of
from local_dp.records import Records, absent


@dataclass(frozen=True)
class CountTriangles(ByMechanism[Graph | Triangles, int]):
    """Releases the number of triangles of a graph whose edges are the rows. The number of nodes is public; neighbours differ in one edge."""

    source: str = option(help="The column of one node of each edge", metavar="NAME")
    target: str = option(help="The column of the other node", metavar="NAME")
    _: KW_ONLY
    nodes: int = option(help="The public number of nodes, including nodes without an edge", metavar="N")
    name: ClassVar[str] = "triangles"
    example: ClassVar[str] = "triangles --records edges.csv --source from --target to --nodes 500"

    def mechanism(self) -> Mechanism[Graph | Triangles, int, Loss]:
        return LadderTriangles(self.epsilon)

    def size(self, records: Records) -> int:
        """The number of nodes: the number of edges is protected."""
        return self.nodes

    def database(self, records: Records) -> Triangles:
        ends = [labels_of(records, column) for column in (self.source, self.target)]
        if any(absent(records[column]).any() for column in (self.source, self.target)):
            raise InputError("some edge lacks a node; remove such rows from the table")
        names, places = np.unique(np.concatenate(ends), return_inverse=True)
        if len(names) > self.nodes:
            raise InputError(f"the edges name more than the {self.nodes:,} nodes that are declared; declare all nodes, also those without an edge")
        return Triangles(Graph.of(places.reshape(2, -1).T, self.nodes))

    def to_data(self, result: int, records: Records) -> dict[str, Any]:
        explanation = "One edge more or less is hidden; the number of nodes is public. The release is pure, also with a delta."
        return {"columns": ["", "triangles"], "rows": [["graph", result]], "explanation": explanation}

    def truth(self, result: int, records: Records) -> dict[str, Any]:
        triangles = self.database(records)
        return {"triangles": triangles.value, "error": abs(result - triangles.value), "edges": len(records)}
