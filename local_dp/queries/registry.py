"""Every query by name: a request may ask these. Queries travel as a name and parameters, never as code."""

from local_dp.queries.query import Query
from local_dp.registry import Registry

<<<<<<< HEAD
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
        "odd": "local_dp.queries.cells:Odd",
        "grouped": "local_dp.queries.cells:Grouped",
        "correlation": "local_dp.queries.examples:Correlation",
        "signed-label": "local_dp.queries.examples:SignedLabel",
        "coordinates": "local_dp.queries.vectors:Coordinates",
        "product": "local_dp.queries.examples:Product",
        "mistake": "local_dp.queries.vectors:Mistake",
        "descent": "local_dp.queries.vectors:Descent",
        "descent-vector": "local_dp.queries.vectors:DescentVector",
        "nearest-centre": "local_dp.queries.vectors:NearestCentre",
        "centre-sum": "local_dp.queries.vectors:CentreSum",
        "cell": "local_dp.queries.cells:Cell",
        "change-interval": "local_dp.queries.tables:ChangeInterval",
        "subset": "local_dp.queries.subsets:Subset",
        "bit": "local_dp.queries.encoded:Bit",
        "decrypted": "local_dp.queries.subsets:Decrypted",
        "encoded": "local_dp.queries.encoded:Encoded",
        "verdict": "local_dp.learners.tabular:Verdict",
        "prefix": "local_dp.queries.strings:Prefix",
        "hashed-prefix": "local_dp.queries.strings:HashedPrefix",
        "kept-prefix": "local_dp.queries.strings:KeptPrefix",
        "parity-example": "local_dp.queries.examples:ParityExample",
        "parity-coset": "local_dp.queries.examples:ParityCoset",
        "path-step": "local_dp.queries.examples:PathStep",
        "masked-index": "local_dp.masked.queries:MaskedIndex",
        "masked-parity": "local_dp.masked.queries:MaskedParity",
        "masked-indicator": "local_dp.masked.queries:MaskedIndicator",
        "masked-disagreement": "local_dp.masked.queries:MaskedDisagreement",
        "masked-list": "local_dp.masked.queries:MaskedList",
        "masked-bent": "local_dp.masked.queries:MaskedBent",
        "masked-bit": "local_dp.masked.queries:MaskedBit",
        "masked-coset": "local_dp.masked.queries:MaskedCoset",
        "masked-random": "local_dp.masked.queries:MaskedRandom",
    },
)
=======
QUERIES = Registry("query", "local_dp.queries", Query, ("queries/*.py", "learners/verdicts.py", "masked/queries.py"))
>>>>>>> randomizers
