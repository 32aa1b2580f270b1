"""Every query by name: what a request may ask. Queries travel as a name and parameters, never as code."""

from local_dp.queries.base import Query
from local_dp.registry import Registry

QUERIES = Registry(
    "query",
    "local_dp.queries",
    Query,
    {
        "question": "local_dp.queries.tables:Question",
        "category": "local_dp.queries.tables:Category",
        "bounded": "local_dp.queries.tables:Bounded",
        "binned": "local_dp.queries.cells:Binned",
        "below": "local_dp.queries.cells:Below",
        "crossed": "local_dp.queries.cells:Crossed",
        "grouped": "local_dp.queries.cells:Grouped",
        "correlation": "local_dp.queries.examples:Correlation",
        "signed-label": "local_dp.queries.examples:SignedLabel",
        "coordinates": "local_dp.queries.vectors:Coordinates",
        "product": "local_dp.queries.examples:Product",
        "mistake": "local_dp.queries.margins:Mistake",
        "descent": "local_dp.queries.margins:Descent",
        "nearest-centre": "local_dp.queries.centres:NearestCentre",
        "centre-sum": "local_dp.queries.centres:CentreSum",
        "cell": "local_dp.queries.cells:Cell",
        "subset": "local_dp.queries.subsets:Subset",
        "bit": "local_dp.queries.packed:Bit",
        "decrypted": "local_dp.queries.ciphers:Decrypted",
        "encoded": "local_dp.queries.encoded:Encoded",
        "verdict": "local_dp.learners.verdicts:Verdict",
        "parity-example": "local_dp.queries.parity:ParityExample",
        "parity-coset": "local_dp.queries.parity:ParityCoset",
        "masked-index": "local_dp.masked.queries:MaskedIndex",
        "masked-parity": "local_dp.masked.queries:MaskedParity",
        "masked-indicator": "local_dp.masked.queries:MaskedIndicator",
        "masked-disagreement": "local_dp.masked.queries:MaskedDisagreement",
        "masked-list": "local_dp.masked.queries:MaskedList",
        "masked-bent": "local_dp.masked.queries:MaskedBent",
        "masked-bit": "local_dp.masked.signs:MaskedBit",
        "masked-coset": "local_dp.masked.signs:MaskedCoset",
        "masked-random": "local_dp.masked.signs:MaskedRandom",
    },
)
