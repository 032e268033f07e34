"""What tests of the engine are made of: small random plans, events and their reference answer.

Domains are tiny on purpose: rows collide, keys match, groups vanish and come back.
"""

from stream_engine.testing.bundles import bundles, expected_result
from stream_engine.testing.histories import (
    COLUMNS,
    SECOND,
    SOURCES,
    Moment,
    delta_sequences,
    deltas,
    histories,
    rows,
    schemas,
    values,
)
from stream_engine.testing.plans import (
    columns_of_type,
    joins,
    plans,
    predicates,
    projections,
    windows,
)
from stream_engine.testing.running import LocalRun, RemoteRun, accumulated, alone, evaluated_over

__all__ = [
    "COLUMNS",
    "SECOND",
    "SOURCES",
    "LocalRun",
    "Moment",
    "RemoteRun",
    "accumulated",
    "alone",
    "bundles",
    "columns_of_type",
    "delta_sequences",
    "deltas",
    "evaluated_over",
    "expected_result",
    "histories",
    "joins",
    "plans",
    "predicates",
    "projections",
    "rows",
    "schemas",
    "values",
    "windows",
]
