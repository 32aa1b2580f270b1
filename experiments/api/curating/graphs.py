"""What a curator tells of a graph given as a table of edges."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from local_dp.curator.mechanism import Mechanism
from local_dp.curator.sensitivity.triangles import LadderTriangles, Triangles
from local_dp.errors import InputError
from local_dp.experiments.api.trusted import ByMechanism, Trust
from local_dp.loss import Loss
from local_dp.populations.graphs import Graph
from local_dp.queries.tables import labels_of
from local_dp.records import Records, absent


@dataclass(frozen=True)
class CountTriangles(ByMechanism[Graph | Triangles, int]):
    """How many triangles a graph has, whose edges are the rows: each joins the values of two columns. The number of nodes is public, edges are not."""

    source: str
    target: str
    nodes: int
    name = "triangles"

    def mechanism(self, trust: Trust) -> Mechanism[Graph | Triangles, int, Loss]:
        return LadderTriangles(trust.epsilon)

    def size(self, records: Records) -> int:
        """Of nodes: how many edges there are is what is protected."""
        return self.nodes

    def database(self, records: Records) -> Triangles:
        ends = [labels_of(records, column) for column in (self.source, self.target)]
        if any(absent(records[column]).any() for column in (self.source, self.target)):
            raise InputError("some edge lacks a node; leave such rows out of the table")
        names, places = np.unique(np.concatenate(ends), return_inverse=True)
        if len(names) > self.nodes:
            raise InputError(f"the edges name more than the {self.nodes:,} nodes that are declared; declare all nodes, those without an edge too")
        return Triangles(Graph.of(places.reshape(2, -1).T, self.nodes))

    def to_data(self, result: int, records: Records) -> dict[str, Any]:
        said = "One edge more or less is hidden; the number of nodes is public. Pure, whatever delta is allowed."
        return {"columns": ["", "triangles"], "rows": [["graph", result]], "explanation": said}

    def truth(self, result: int, records: Records) -> dict[str, Any]:
        triangles = self.database(records)
        return {"triangles": triangles.value, "error": abs(result - triangles.value), "edges": len(records)}
