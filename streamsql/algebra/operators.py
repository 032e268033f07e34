"""Relational operators: plans that cannot be built ill-formed.

Every node is frozen, compares by structure, knows its schema, and travels between services as it is
(the codec is msgspec's). Leaves: `Scan` (a source or table), `RemoteSource` (another fragment),
`RecursiveReference` (the relation being defined), `Values`.
"""

import enum
from collections.abc import Callable, Iterator
from typing import Union

import msgspec

from streamsql.algebra.expressions import Column, Expression, columns_of
from streamsql.data.schema import Field, Schema
from streamsql.data.types import DataType
from streamsql.errors import InternalError


class SourceKind(enum.StrEnum):
    """What stands behind a scan."""

    STREAM = "stream"
    LINK = "link"
    TABLE = "table"


class WindowKind(enum.StrEnum):
    """CQL windows."""

    RANGE = "RANGE"
    ROWS = "ROWS"
    NOW = "NOW"
    UNBOUNDED = "UNBOUNDED"


class JoinKind(enum.StrEnum):
    """Which unmatched rows a join keeps."""

    INNER = "INNER"
    LEFT = "LEFT"


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise InternalError(message)


class Scan(msgspec.Struct, frozen=True, tag="scan"):
    """The current contents of a source or table.

    A keyed stream keeps the newest row per key (an older one that arrives late is ignored); a row
    leaves `ttl` microseconds after its event time. Without key and ttl a stream is the bag of all
    its rows.

    Attributes:
        time_column: Position of the event time, or None when rows are stamped on arrival.
        ttl: Lifetime in microseconds, or None.
        key: Positions of the upsert key; empty for a bag.
    """

    source: str
    kind: SourceKind
    columns: Schema
    key: tuple[int, ...] = ()
    time_column: int | None = None
    ttl: int | None = None

    @property
    def schema(self) -> Schema:
        """The declared columns."""
        return self.columns

    @property
    def inputs(self) -> tuple["Plan", ...]:
        """Nothing: a leaf."""
        return ()


class RemoteSource(msgspec.Struct, frozen=True, tag="remote"):
    """What another fragment sends here."""

    fragment: str
    columns: Schema

    @property
    def schema(self) -> Schema:
        """The other fragment's output columns."""
        return self.columns

    @property
    def inputs(self) -> tuple["Plan", ...]:
        """Nothing: a leaf."""
        return ()


class RecursiveReference(msgspec.Struct, frozen=True, tag="recursive"):
    """The relation that the enclosing fixpoint defines."""

    name: str
    columns: Schema

    @property
    def schema(self) -> Schema:
        """The recursive relation's columns."""
        return self.columns

    @property
    def inputs(self) -> tuple["Plan", ...]:
        """Nothing: a leaf."""
        return ()


class Values(msgspec.Struct, frozen=True, tag="values"):
    """Constant rows."""

    rows: tuple[tuple[bool | int | float | str | None, ...], ...]
    columns: Schema

    @property
    def schema(self) -> Schema:
        """The rows' columns."""
        return self.columns

    @property
    def inputs(self) -> tuple["Plan", ...]:
        """Nothing: a leaf."""
        return ()


class Window(msgspec.Struct, frozen=True, tag="window"):
    """The part of a source that a CQL window holds at time `now`.

    RANGE: event time > now - size (with slide: now rounded down to a multiple of the slide).
    ROWS: the last `size` rows by event time, ties by row value; per partition if there is one.
    NOW: the rows of the current second of event time.
    UNBOUNDED: all rows so far; the source's own ttl still holds.

    Windows stand directly on scans only, never on derived relations.
    """

    input: Scan
    kind: WindowKind
    size: int | None = None
    slide: int | None = None
    partition: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse sizes that make no sense."""
        sized = self.kind in (WindowKind.RANGE, WindowKind.ROWS)
        _require(sized == (self.size is not None and self.size > 0), "window size")
        _require(self.slide is None or self.slide > 0, "window slide")

    @property
    def schema(self) -> Schema:
        """The source's columns."""
        return self.input.schema

    @property
    def inputs(self) -> tuple["Plan", ...]:
        """The scan."""
        return (self.input,)


class Filter(msgspec.Struct, frozen=True, tag="filter"):
    """The rows for which a predicate is TRUE."""

    input: "Plan"
    predicate: Expression

    def __post_init__(self) -> None:
        """Refuse a predicate that reads beyond the input."""
        _check_columns((self.predicate,), len(self.input.schema), "filter")
        _require(self.predicate.dtype in (DataType.BOOLEAN, DataType.NULL), "filter type")

    @property
    def schema(self) -> Schema:
        """The input's columns."""
        return self.input.schema

    @property
    def inputs(self) -> tuple["Plan", ...]:
        """The input."""
        return (self.input,)


class Project(msgspec.Struct, frozen=True, tag="project"):
    """One expression per output column; duplicates are kept."""

    input: "Plan"
    expressions: tuple[Expression, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse expressions that read beyond the input."""
        _require(len(self.expressions) == len(self.names), "project names")
        _check_columns(self.expressions, len(self.input.schema), "project")

    @property
    def schema(self) -> Schema:
        """Names with the expressions' types."""
        pairs = zip(self.names, self.expressions, strict=True)
        return Schema(tuple(Field(name, e.dtype) for name, e in pairs))

    @property
    def inputs(self) -> tuple["Plan", ...]:
        """The input."""
        return (self.input,)


class Join(msgspec.Struct, frozen=True, tag="join"):
    """Pairs of rows that agree on the keys and satisfy the residual predicate.

    NULL keys never match. A LEFT join also keeps every left row without partner, padded with NULLs.

    Attributes:
        keys: Pairs (left position, right position); empty for a theta join or product.
        residual: Read over the concatenated row.
    """

    left: "Plan"
    right: "Plan"
    kind: JoinKind
    keys: tuple[tuple[int, int], ...] = ()
    residual: Expression | None = None

    def __post_init__(self) -> None:
        """Refuse keys and predicates that read beyond their side."""
        left, right = len(self.left.schema), len(self.right.schema)
        for left_key, right_key in self.keys:
            _require(0 <= left_key < left and 0 <= right_key < right, "join key out of range")
        if self.residual is not None:
            _check_columns((self.residual,), left + right, "join")

    @property
    def schema(self) -> Schema:
        """Left columns, then right columns."""
        return self.left.schema + self.right.schema

    @property
    def inputs(self) -> tuple["Plan", ...]:
        """Left and right."""
        return (self.left, self.right)


class AggregateFunction(enum.StrEnum):
    """Aggregates; all skip NULLs except COUNT_ALL (`COUNT(*)`)."""

    COUNT_ALL = "COUNT(*)"
    COUNT = "COUNT"
    SUM = "SUM"
    AVG = "AVG"
    MIN = "MIN"
    MAX = "MAX"
    ARG_MIN = "ARG_MIN"
    ARG_MAX = "ARG_MAX"


class AggregateCall(msgspec.Struct, frozen=True, tag="aggregate_call"):
    """One aggregate of a GROUP BY.

    ARG_MIN(value, by) is the value where `by` is least, ties by least value; ARG_MAX where `by` is
    greatest, ties by least value. SUM and AVG of DOUBLE are exact: the correctly rounded result of
    the real sum, whatever the order of arrival.
    """

    function: AggregateFunction
    arguments: tuple[Expression, ...]
    name: str
    distinct: bool = False

    @property
    def dtype(self) -> DataType:
        """The result type."""
        match self.function:
            case AggregateFunction.COUNT | AggregateFunction.COUNT_ALL:
                return DataType.INTEGER
            case AggregateFunction.AVG:
                return DataType.DOUBLE
            case _:
                return self.arguments[0].dtype


class Aggregate(msgspec.Struct, frozen=True, tag="aggregate"):
    """Groups and their aggregates; without group columns always exactly one row.

    The output is the group columns, then one column per aggregate.
    """

    input: "Plan"
    group: tuple[int, ...]
    aggregates: tuple[AggregateCall, ...]

    def __post_init__(self) -> None:
        """Refuse columns beyond the input."""
        width = len(self.input.schema)
        _require(all(0 <= g < width for g in self.group), "group column out of range")
        for call in self.aggregates:
            _check_columns(call.arguments, width, "aggregate")

    @property
    def schema(self) -> Schema:
        """Group columns, then aggregates."""
        calls = tuple(Field(call.name, call.dtype) for call in self.aggregates)
        return Schema(self.input.schema.select(self.group).fields + calls)

    @property
    def inputs(self) -> tuple["Plan", ...]:
        """The input."""
        return (self.input,)


class Distinct(msgspec.Struct, frozen=True, tag="distinct"):
    """Each row once."""

    input: "Plan"

    @property
    def schema(self) -> Schema:
        """The input's columns."""
        return self.input.schema

    @property
    def inputs(self) -> tuple["Plan", ...]:
        """The input."""
        return (self.input,)


class UnionAll(msgspec.Struct, frozen=True, tag="union_all"):
    """The bag sum of inputs of equal types; UNION is Distinct over it."""

    branches: tuple["Plan", ...]

    def __post_init__(self) -> None:
        """Refuse branches of different types."""
        _require(bool(self.branches), "union without branches")
        first = self.branches[0].schema.dtypes
        _require(all(b.schema.dtypes == first for b in self.branches), "union types differ")

    @property
    def schema(self) -> Schema:
        """The first branch's columns."""
        return self.branches[0].schema

    @property
    def inputs(self) -> tuple["Plan", ...]:
        """The branches."""
        return self.branches


class Best(msgspec.Struct, frozen=True):
    """One MIN or MAX of an aggregate selection.

    Attributes:
        value: Position of the aggregated column in the recursive relation.
        minimum: True for MIN, False for MAX.
    """

    value: int
    minimum: bool = True


class AggregateSelection(msgspec.Struct, frozen=True):
    """MIN and MAX pushed into a recursion: per group only the best rows (all ties) count.

    With several aggregates a row counts when it is best for any of them (multi-aggregate
    selection). A row whose value is NULL is not best for that aggregate.

    Attributes:
        group: Positions of the group columns in the recursive relation.
        bests: The aggregates; at least one.
    """

    group: tuple[int, ...]
    bests: tuple[Best, ...]


class RecursionChoice(msgspec.Struct, frozen=True):
    """How a recursion is to be maintained; the answer is the same whatever is chosen.

    Written `WITH (strategy = '…', ship = '…', …)` behind a query. "auto" leaves the choice to the
    optimizer, and after it to the engine.

    Attributes:
        strategy: "auto", "kernel", "ranked", "absorption", "relative", "dred", "set" or
            "recompute".
        way: With several sites: "auto", "centre", "flood", "annotations" or "witness".
        ship: When alternative derivations go to other sites: "auto", "lazy", "eager", "witness",
            "ship-all", or an interval in microseconds as digits.
        order: Variable order of decision diagrams: "auto", "dfs", "arrival" or "rebuild".
        annotations: Encoding of provenance: "auto", "dnf" or "bdd".
        compiled: Whether kernels may be compiled: "auto", "yes" or "no".
        width: Most supports of an annotation, in units of its encoding; 0 for the default.
    """

    strategy: str = "auto"
    way: str = "auto"
    ship: str = "auto"
    order: str = "auto"
    annotations: str = "auto"
    compiled: str = "auto"
    width: int = 0


class Fixpoint(msgspec.Struct, frozen=True, tag="fixpoint"):
    """The least relation containing the base branches and closed under the step branches.

    Set semantics. Each step branch reads `RecursiveReference(name)` at least once; more than once
    makes the recursion non-linear. Mutually recursive relations are one relation whose first
    column tells them apart.

    Attributes:
        limit: Most rows the relation may have before the query is stopped with an error.
        selection: With it, the relation is only its best rows per group, ties kept.
        choice: How it is to be maintained.
    """

    name: str
    columns: Schema
    base: tuple["Plan", ...]
    step: tuple["Plan", ...]
    limit: int = 1_000_000
    selection: AggregateSelection | None = None
    choice: RecursionChoice = RecursionChoice()

    def __post_init__(self) -> None:
        """Refuse branches of other types."""
        types = self.columns.dtypes
        _require(bool(self.base), "recursion without base branch")
        for branch in self.base + self.step:
            _require(branch.schema.dtypes == types, "recursive branch types differ")

    @property
    def schema(self) -> Schema:
        """The declared columns."""
        return self.columns

    @property
    def inputs(self) -> tuple["Plan", ...]:
        """Base branches, then step branches."""
        return self.base + self.step


Plan = Union[  # noqa: UP007  (msgspec resolves the forward references)
    Scan,
    RemoteSource,
    RecursiveReference,
    Values,
    Window,
    Filter,
    Project,
    Join,
    Aggregate,
    Distinct,
    UnionAll,
    Fixpoint,
]


def _check_columns(expressions: tuple[Expression, ...], width: int, where: str) -> None:
    for expression in expressions:
        for position in columns_of(expression):
            _require(0 <= position < width, f"{where} reads column {position} of {width}")


def with_inputs(plan: Plan, inputs: tuple[Plan, ...]) -> Plan:
    """Return the same operator over other inputs.

    Raises:
        InternalError: The number or the kind of inputs is wrong.
    """
    _require(len(inputs) == len(plan.inputs), "wrong number of inputs")
    match plan:
        case Scan() | RemoteSource() | RecursiveReference() | Values():
            return plan
        case Window():
            (only,) = inputs
            if not isinstance(only, Scan):
                raise InternalError("a window stands on a scan")
            return msgspec.structs.replace(plan, input=only)
        case Join():
            return msgspec.structs.replace(plan, left=inputs[0], right=inputs[1])
        case UnionAll():
            return UnionAll(inputs)
        case Fixpoint(base=base):
            return msgspec.structs.replace(plan, base=inputs[: len(base)], step=inputs[len(base) :])
        case Filter() | Project() | Aggregate() | Distinct():
            return msgspec.structs.replace(plan, input=inputs[0])


def transform_up(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """Rebuild a plan bottom-up through a function."""
    inputs = tuple(transform_up(child, change) for child in plan.inputs)
    return change(plan if inputs == plan.inputs else with_inputs(plan, inputs))


def walk_plan(plan: Plan) -> Iterator[Plan]:
    """Yield every node, parents first."""
    yield plan
    for child in plan.inputs:
        yield from walk_plan(child)


def refers_to(plan: Plan, name: str) -> bool:
    """Whether a plan reads the recursive relation of that name."""
    return any(isinstance(n, RecursiveReference) and n.name == name for n in walk_plan(plan))


def is_open(plan: Plan) -> bool:
    """Whether a plan reads a recursive relation that it does not define itself.

    A plan with a whole recursion inside is closed.
    """
    return bool(_open_names(plan))


def _open_names(plan: Plan) -> frozenset[str]:
    if isinstance(plan, RecursiveReference):
        return frozenset((plan.name,))
    names = frozenset[str]().union(*map(_open_names, plan.inputs))
    return names - {plan.name} if isinstance(plan, Fixpoint) else names


def identity_columns(schema: Schema) -> tuple[Expression, ...]:
    """Return one column expression per column of a schema."""
    return tuple(Column(i, f.name, f.dtype) for i, f in enumerate(schema.fields))
