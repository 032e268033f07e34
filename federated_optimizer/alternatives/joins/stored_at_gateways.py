"""Joins of a stream with a small stored table at the gateways of the stream.

Either the rows of the table go to all of these gateways, each of which joins its own rows, or only
the distinct keys of the table go there. Then the gateways send the base the rows with a partner,
and the join is at the base, over these and the table.

| join | its rows | its keys |
|---|---|---|
| INNER | from either side | from either side |
| SEMI | of the stream | of either side |
| LEFT, ANTI | of the stream: a row of it is judged once, by the whole table | no |
| FULL | no | no |

Rows of LEFT, ANTI and FULL count without a partner, too: a stream that keys have reduced lacks
them. A table's own row is judged once, by the streams of all gateways, so it is judged at the base.
"""

from dataclasses import dataclass

from federated_optimizer.alternatives.gateway_pieces import TwoSided, pairs_of
from federated_optimizer.alternatives.heuristics import ALL, Heuristic, Heuristics
from federated_optimizer.alternatives.joins.keys_first import SemiJoin
from federated_optimizer.alternatives.joins.meeting import Meeting, Move
from federated_optimizer.alternatives.key_lookup import keys_of
from federated_optimizer.alternatives.method import Method, Refused, not_considered
from federated_optimizer.alternatives.pieces import Colocation, GatewayPiece, Piece, StaticPiece
from federated_optimizer.alternatives.words import names_text
from federated_optimizer.costs.relations.size_and_motion import Estimate
from federated_optimizer.network.topology import Topology
from streamsql.algebra.operators import Fixpoint, Join, JoinKind, Plan, Scan, walk_plan
from streamsql.wire.fragments import GATEWAY_ROW_BYTES, GATEWAY_TABLE_ROWS

OUTGROWN = "a table of this query had more rows than its gateways keep, whatever was estimated"
"""Why gateways keep no table of a query any more: a wrong estimate would be made again."""


@dataclass(frozen=True, slots=True)
class StoredSide:
    """A join of what gateways have with a stored table.

    Attributes:
        table_first: Whether the table is the left side.
    """

    stream: GatewayPiece
    table: StaticPiece
    table_first: bool


def stored_side(left: Piece, right: Piece) -> StoredSide | None:
    """Return the sides of a join of a stream with a table; None: it is something else."""
    if isinstance(left, GatewayPiece) and isinstance(right, StaticPiece):
        return StoredSide(left, right, table_first=False)
    if isinstance(left, StaticPiece) and isinstance(right, GatewayPiece):
        return StoredSide(right, left, table_first=True)
    return None


def stored_meeting(
    plan: TwoSided, sides: StoredSide, topology: Topology, kept: Heuristics = ALL
) -> Meeting | Refused:
    """Return the join at the gateways to which the rows of the table go, or why it is not there."""
    refused = _refused(plan, sides, topology, kept)
    if refused is not None:
        return refused
    if plan.kind == JoinKind.FULL:
        return Refused("rows of both sides without partner are in its result, once")
    if sides.table_first and plan.kind != JoinKind.INNER:
        return Refused(f"each row of {_tables(sides)} is judged once, by the rows of all gateways")
    stream, words = sides.stream, f"{_tables(sides)} sent to all gateways of {_streams(sides)}"
    words += ", joined there"
    if not sides.table_first:
        return Meeting(stream.sites, None, Move(), stream.colocations, words)
    offset = len(sides.table.plan.schema)
    lie = tuple(
        Colocation(c.group, tuple(p + offset for p in c.columns)) for c in stream.colocations
    )
    return Meeting(stream.sites, Move(), None, lie, words)


def stored_semi_join(
    plan: TwoSided, sides: StoredSide, topology: Topology, kept: Heuristics = ALL
) -> SemiJoin | Refused:
    """Return what travels if the keys of the table go to the gateways, or why they do not."""
    refused = _refused(plan, sides, topology, kept)
    if refused is not None:
        return refused
    if plan.kind not in (JoinKind.INNER, JoinKind.SEMI):
        return Refused("rows without a partner count, too")
    pairs = pairs_of(plan)
    if not pairs:
        return Refused("without an equality there are no keys")
    mine = tuple(pair[1 if sides.table_first else 0] for pair in pairs)
    theirs = tuple(pair[0 if sides.table_first else 1] for pair in pairs)
    words = (
        f"keys of {_tables(sides)} sent to all gateways of {_streams(sides)}, "
        "what they find joined at the base"
    )
    return SemiJoin(
        keys_of(sides.table.plan, theirs, with_null=True),
        tuple((column, number) for number, column in enumerate(mine)),
        reduces_left=not sides.table_first,
        words=words,
    )


def sent_of(sides: StoredSide, found: Meeting | SemiJoin) -> Plan:
    """Return what the static engine sends to gateways."""
    return found.keys if isinstance(found, SemiJoin) else sides.table.plan


def why_too_large(sides: StoredSide, sent: Estimate, width: float) -> str:
    """Return why gateways do not keep what would be sent to each; empty: they do.

    The estimate counts with its range: rows that come after all would make the query fail.

    Args:
        sides: Of the join.
        sent: Rows that would be.
        width: Bytes of a row.
    """
    rows, most = sent.rows * sent.factor, GATEWAY_TABLE_ROWS * GATEWAY_ROW_BYTES
    if rows <= GATEWAY_TABLE_ROWS and rows * width <= most:
        return ""
    return (
        f"{_tables(sides)} may have {rows:,.0f} rows ({rows * width / 1e6:,.1f} MB) for it, and a "
        f"gateway keeps at most {GATEWAY_TABLE_ROWS:,} ({most / 1e6:,.0f} MB)"
    )


def _refused(
    plan: TwoSided, sides: StoredSide, topology: Topology, kept: Heuristics
) -> Refused | None:
    if not isinstance(plan, Join):
        return Refused("only joins are computed where rows of a table come to")
    if sides.table.site != topology.static:
        return Refused(
            f"{_tables(sides)} is kept by the coordinator, which sends rows to base sites only"
        )
    if any(_is_uncounted(node) for node in walk_plan(sides.table.plan)):
        return Refused(f"nobody knows how many rows of {_tables(sides)} it has before it is read")
    if not sides.stream.sites:
        return Refused(f"no gateway has {_streams(sides)}")
    if not plan.keys and Heuristic.NO_PRODUCT in kept:
        return not_considered(Heuristic.NO_PRODUCT)
    if sides.stream.joins and Heuristic.ONE_JOIN in kept:
        return not_considered(Heuristic.ONE_JOIN)
    return None


def _is_uncounted(node: Plan) -> bool:
    """Return whether nobody can say how many rows an operator gives: a recursion, or the past."""
    return isinstance(node, Fixpoint) or (isinstance(node, Scan) and node.history is not None)


def _tables(sides: StoredSide) -> str:
    return names_text(sides.table.tables)


def _streams(sides: StoredSide) -> str:
    return names_text(sides.stream.sources)


STORED = (Method.STORED_ROWS, Method.STORED_KEYS)
"""In the order of the memo."""
