"""Joins of a stream with a large stored table: keys go to the table, its matching rows come back.

The stream side is one fragment at the base. A second one reads it there and sends its distinct keys
to the static engine, which answers with what the join needs of these keys only. Keys that are no
longer there do no harm: the join at the base meets them with no row.

| join | static engine, of keys K and table T | base, of stream S |
|---|---|---|
| INNER, SEMI | T SEMI K | the join, with the rows found in place of T |
| S SEMI T | K SEMI T | S SEMI found |
| S ANTI T | K ANTI T | S SEMI found, and the rows of S with a NULL key |
| S LEFT T | K LEFT T | S INNER found, and the rows of S with a NULL key, padded |

So a row of S waits until its key is answered, and never shows as one without partner before.
"""

import dataclasses
from collections.abc import Sequence

from federated_optimizer.alternatives.gateway_pieces import TwoSided
from federated_optimizer.alternatives.key_lookup import Sides, keys_of, sides_of, wanted_of
from federated_optimizer.alternatives.method import Method
from federated_optimizer.alternatives.pieces import BasePiece, Cut, Piece
from federated_optimizer.alternatives.words import names_text
from federated_optimizer.costs.relations.estimates import estimate, row_bytes
from federated_optimizer.cutting.cuts import Cuts
from federated_optimizer.network.topology import Topology
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import (
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    RemoteSource,
    UnionAll,
    with_inputs,
)
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

LARGE_ROWS = 10_000.0
"""Smaller tables travel whole where nobody has chosen: a join that has all of their rows waits for
nobody."""

LEAST_FACTOR = 4.0
"""How many times more rows than keys a table has to have."""

_STAYS = 4.0
"""A running query is changed only for a table this many times smaller: it starts anew."""


class KeyedCuts(Cuts):
    """Cuts, and joins with large tables by their keys.

    Attributes:
        topology: The sites.
        statistics: What is known of sources and recursions that run.
        keys: Pieces at the base that read the stream side of a join, by the name of the leaf that
            stands for them in the static engine's piece.
    """

    def __init__(
        self,
        bases: tuple[str, ...],
        topology: Topology,
        statistics: Statistics,
    ) -> None:
        super().__init__(bases)
        self.topology = topology
        self.statistics = statistics
        self.keys: dict[str, BasePiece] = {}

    def _keyed_join(
        self,
        plan: TwoSided,
        left: Piece,
        right: Piece,
        reasons: tuple[str, ...],
        method: Method | None,
    ) -> BasePiece | None:
        """Return the join by keys, or None where the table should rather travel whole."""
        if method not in (None, Method.KEYS):
            return None
        if not (isinstance(plan, Join) and self._may_look_up):
            return None
        sides = sides_of(plan, left, right, self.topology)
        if not isinstance(sides, Sides) or (method is None and not self._is_large(sides)):
            return None
        stream = self._as_leaf(self._hashed(sides.stream, sides.stream_keys))
        keys = keys_of(stream.plan, sides.stream_keys)
        asked = RemoteSource(self._leaf_of_keys(stream, keys), keys.schema)
        wanted, columns = wanted_of(plan, sides, asked, sides.table.plan)
        table = dataclasses.replace(
            sides.table, plan=wanted, notes=(self._note(sides, keys.schema),)
        )
        found = self._hashed(table, columns).plan
        made = _joined(plan, sides, stream.plan, found)
        return BasePiece(made, stream.spread, stream.reasons + reasons)

    def _is_large(self, sides: Sides) -> bool:
        """Whether a table is known to be large, and larger than the stream side has rows."""
        known = [self.statistics.sources.get(name.lower()) for name in sides.table.tables]
        most = max((f.rows for f in known if f is not None and f.rows is not None), default=0.0)
        factor = LEAST_FACTOR
        if any(name.lower() in self.statistics.looked_up for name in sides.table.tables):
            most, factor = most * _STAYS, factor / _STAYS
        if most < LARGE_ROWS:
            return False
        keys = estimate(sides.stream_plan, self.statistics).rows
        return estimate(sides.table.plan, self.statistics).rows >= factor * keys

    def _as_leaf(self, piece: BasePiece) -> BasePiece:
        """Return a base piece as a leaf, so that two fragments of its sites can read it."""
        if isinstance(piece.plan, RemoteSource):
            return piece
        number = self._number(Cut(piece, piece.spread.columns))
        return BasePiece(RemoteSource(number, piece.plan.schema), piece.spread)

    def _leaf_of_keys(self, stream: BasePiece, keys: Plan) -> str:
        """Return the leaf for keys of a stream; those that two joins ask for are sent once."""
        piece = dataclasses.replace(stream, plan=keys, reasons=())
        for name, known in self.keys.items():
            if known == piece:
                return name
        name = f"?{len(self.keys) + 1}"
        self.keys[name] = piece
        return name

    def _note(self, sides: Sides, keys: Schema) -> str:
        rows = estimate(sides.table.plan, self.statistics).rows
        count = estimate(sides.stream_plan, self.statistics).rows
        stays = _size(rows * row_bytes(sides.table.plan.schema))
        return (
            f"looked up by key: about {rows:,.0f} rows ({stays}) of "
            f"{names_text(sides.table.tables)} stay; about {count:,.0f} keys "
            f"({_size(count * row_bytes(keys))}) and what they match travel"
        )


def _joined(plan: Join, sides: Sides, stream: Plan, found: Plan) -> Plan:
    """Return the base's plan over the stream and what was found of its keys."""
    if sides.table_first:
        return with_inputs(plan, (found, stream))
    if plan.kind == JoinKind.INNER or plan.residual is not None:
        return with_inputs(plan, (stream, found))
    pairs = tuple((key, number) for number, key in enumerate(sides.stream_keys))
    if plan.kind == JoinKind.SEMI:
        return Join(stream, found, JoinKind.SEMI, pairs)
    without_key = Filter(stream, _any_null(stream.schema, sides.stream_keys))
    if plan.kind == JoinKind.ANTI:
        return UnionAll((Join(stream, found, JoinKind.SEMI, pairs), without_key))
    fields, names = plan.schema.fields, plan.schema.names
    width, keys = len(stream.schema), len(sides.stream_keys)
    own: tuple[Expression, ...] = tuple(
        Column(p, f.name, f.dtype) for p, f in enumerate(stream.schema.fields)
    )
    others = tuple(Column(width + keys + p, f.name, f.dtype) for p, f in enumerate(fields[width:]))
    nulls = tuple(Literal(None, f.dtype) for f in fields[width:])
    matched = Join(stream, found, JoinKind.INNER, pairs)
    return UnionAll(
        (Project(matched, own + others, names), Project(without_key, own + nulls, names))
    )


def _any_null(schema: Schema, positions: Sequence[int]) -> Expression:
    tests = [
        Call("IS NULL", (Column(p, schema.names[p], schema.dtypes[p]),), DataType.BOOLEAN)
        for p in dict.fromkeys(positions)
    ]
    found: Expression = tests[0]
    for test in tests[1:]:
        found = Call("OR", (found, test), DataType.BOOLEAN)
    return found


def _size(count: float) -> str:
    """Return bytes as people read them."""
    for unit, least in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= least:
            return f"{count / least:.1f} {unit}"
    return f"{count:.0f} B"
