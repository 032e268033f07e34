"""A plan: any of the operators.

Operators are made of plans and a plan is any operator, so the modules of the operators import this
one back, as a module: `plan.Plan` is looked up only when msgspec first resolves their annotations.
The package imports this module before any of them.
"""

from typing import Union

from streamsql.algebra.leaves import (
    RecursiveReference,
    RemoteSource,
    Scan,
    Values,
    Window,
    WindowBounds,
)
from streamsql.algebra.operators.fixpoint import Fixpoint
from streamsql.algebra.operators.orders import OverWindow, TopN
from streamsql.algebra.operators.relational import (
    Aggregate,
    Distinct,
    Filter,
    Materialize,
    OnClose,
    Project,
    SetOperation,
    UnionAll,
)
from streamsql.algebra.operators.relational_joins import AsOfJoin, Join
from streamsql.algebra.operators.to_stream import ToStream
from streamsql.algebra.operators.windows import (
    HopWindow,
    SessionWindow,
    StreamWindow,
    Younger,
)

Plan = Union[  # noqa: UP007  (msgspec resolves the forward references)
    Scan,
    RemoteSource,
    RecursiveReference,
    Values,
    Window,
    WindowBounds,
    Filter,
    Project,
    Materialize,
    Join,
    AsOfJoin,
    Aggregate,
    Distinct,
    TopN,
    OverWindow,
    HopWindow,
    SessionWindow,
    OnClose,
    ToStream,
    StreamWindow,
    Younger,
    SetOperation,
    UnionAll,
    Fixpoint,
]
