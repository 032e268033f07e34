"""Statements that ask about rows: EXPLAIN WHY, EXPLAIN WHAT IF, EXPLAIN CONFIDENCE."""

from dataclasses import dataclass, field

from sqlglot import exp

from streamsql.errors import Span
from streamsql.syntax.explain_options import ExplainFormat
from streamsql.syntax.statements import Name, Query, Statement


@dataclass(frozen=True, slots=True)
class ColumnName:
    """`source.column`."""

    source: Name
    column: Name


@dataclass(frozen=True, slots=True)
class RowPattern:
    """`source(value, …)`: rows of a source by their first columns; None matches anything."""

    source: Name
    values: tuple[exp.Expr | None, ...] = field(compare=False)


@dataclass(frozen=True, slots=True)
class LostGateway:
    """`GATEWAY 'gw-2'`: all base rows that the gateway owns."""

    gateway: Name


@dataclass(frozen=True, slots=True)
class LostNode:
    """`NODE 'n17'`: all its links, and rows of other sources that have it in their key."""

    node: str | int
    span: Span


Loss = RowPattern | LostGateway | LostNode
"""What WHAT IF thinks away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainWhy(Statement):
    """EXPLAIN WHY (query) ROW (values) [WITH (limit = 10, confidence = 'link.pdr')].

    Attributes:
        row: The values as parsed; `streamsql.binder.bind_why` gives them types.
        limit: Max minimal sets of base rows to show.
        confidence: Column with the probability that a base row holds, or None.
        format: TEXT or JSON.
    """

    inner: Query
    row: tuple[exp.Expr, ...] = field(compare=False)
    limit: int
    confidence: ColumnName | None
    format: ExplainFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainWhatIf(Statement):
    """EXPLAIN WHAT IF DELETE source(values), GATEWAY 'g', NODE 'n', … [FOR (query)].

    Attributes:
        inner: The query; None means all running queries that read one of the sources.
        named: The name behind FOR, of a view or a running query; None where a query is written out.
        format: TEXT or JSON.
    """

    inner: Query | None
    deletions: tuple[Loss, ...]
    format: ExplainFormat
    named: Name | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainConfidence(Statement):
    """EXPLAIN CONFIDENCE (query) USING source.column [LIMIT n].

    Attributes:
        using: Column with the probability that a base row holds.
        limit: Max rows to show, or None for all.
        format: TEXT or JSON.
    """

    inner: Query
    using: ColumnName
    limit: int | None
    format: ExplainFormat
