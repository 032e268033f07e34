"""Relational operators: plans that cannot be built ill-formed.

Every node is frozen, compares by structure, knows its schema, and travels between services as it is
(the codec is msgspec's). Leaves are in `streamsql.algebra.leaves`; what an engine has to know to
run a node stands in its docstring, and `streamsql.reference` computes it in the plainest way.
"""

from streamsql.algebra.aggregates import AggregateCall, AggregateFunction
from streamsql.algebra.choices import AggregateSelection, Best, RecursionChoice
from streamsql.algebra.leaves import (
    BOUNDS_COLUMNS,
    RecursiveReference,
    RemoteSource,
    Scan,
    ScanPart,
    SourceKind,
    Values,
    Window,
    WindowBounds,
    WindowKind,
)
from streamsql.algebra.operators import plan  # before the operators, which need it
from streamsql.algebra.operators.fixpoint import Fixpoint
from streamsql.algebra.operators.orders import OverWindow, SortKey, TopN
from streamsql.algebra.operators.relational import (
    Aggregate,
    Distinct,
    Filter,
    Materialize,
    OnClose,
    Project,
    SetKind,
    SetOperation,
    UnionAll,
    identity_columns,
)
from streamsql.algebra.operators.relational_joins import AsOfJoin, Join, JoinKind
from streamsql.algebra.operators.to_stream import StreamKind, ToStream
from streamsql.algebra.operators.traversal import (
    is_open,
    refers_to,
    transform_up,
    walk_plan,
    walk_relation,
    with_inputs,
)
from streamsql.algebra.operators.windows import (
    WINDOW_COLUMNS,
    HopWindow,
    SessionWindow,
    StreamWindow,
    Younger,
)
from streamsql.algebra.over_windows import Frame, WindowCall, WindowFunction

__all__ = [
    "BOUNDS_COLUMNS",
    "WINDOW_COLUMNS",
    "Aggregate",
    "AggregateCall",
    "AggregateFunction",
    "AggregateSelection",
    "AsOfJoin",
    "Best",
    "Distinct",
    "Filter",
    "Fixpoint",
    "Frame",
    "HopWindow",
    "Join",
    "JoinKind",
    "Materialize",
    "OnClose",
    "OverWindow",
    "Plan",
    "Project",
    "RecursionChoice",
    "RecursiveReference",
    "RemoteSource",
    "Scan",
    "ScanPart",
    "SessionWindow",
    "SetKind",
    "SetOperation",
    "SortKey",
    "SourceKind",
    "StreamKind",
    "StreamWindow",
    "ToStream",
    "TopN",
    "UnionAll",
    "Values",
    "Window",
    "WindowBounds",
    "WindowCall",
    "WindowFunction",
    "WindowKind",
    "Younger",
    "identity_columns",
    "is_open",
    "refers_to",
    "transform_up",
    "walk_plan",
    "walk_relation",
    "with_inputs",
]

Plan = plan.Plan
