"""Questions to clients about a table, in one line each:
`import local_dp as ldp; ldp.mean(table, "age", bounds=(15, 45))`.

A table is a path, a mapping of columns or a frame. Every function also takes the options of a run,
the fields of `asking.RunOptions`. Values that need a decision, such as missing ones, are refused
with the choices. Type checkers read the stub beside this file, which `scripts/stub` writes.
"""

from local_dp.api.function import function, run
from local_dp.masked.protocols import MaskedParityLearner
from local_dp.protocols.learning.learn import Learn
from local_dp.protocols.search.heavy_hitters import HeavyHitters
from local_dp.protocols.search.quantiles import Quantiles
from local_dp.protocols.surveys.frequency import Crosstab, Frequency, Histogram
from local_dp.protocols.surveys.survey import StatisticalQueries, Survey
from local_dp.protocols.vectors.marginals import Marginals
from local_dp.protocols.vectors.mean_vector import Mean
from local_dp.protocols.vectors.std import Std
from local_dp.protocols.vectors.workload import Workload

__all__ = ["run"]
survey = function(Survey, "table", "question")
frequency = function(Frequency, "table", "column")
histogram = function(Histogram, "table", "column")
mean = function(Mean, "table", "column", bounds=None)
std = function(Std, "table", "column")
quantiles = function(Quantiles, "table", "column")
crosstab = function(Crosstab, "table", "columns")
marginals = function(Marginals, "table", "columns")
heavy_hitters = function(HeavyHitters, "table", "column")
workload = function(Workload, "table", "columns", "queries")
statistical_queries = function(StatisticalQueries, "table", "queries", name="statistical_queries")
masked_parity = function(MaskedParityLearner, "d", d=8)
learn = function(Learn, "table", "label")
