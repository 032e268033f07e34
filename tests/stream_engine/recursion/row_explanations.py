"""Why a row is in a recursive view, as far as the site that has it knows."""

from collections.abc import Iterator
from dataclasses import dataclass

from stream_engine.provenance.annotation import Support, least_supports
from stream_engine.recursion.absorption.fixpoint_operator import FixpointOperator
from streamsql.algebra.choices import Shipping
from streamsql.data.types import Row


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a row is in the view.

    Attributes:
        supports: Minimal known combinations of tokens; each alone suffices.
        rows: Token -> (leaf number, the leaf's row cut to the columns the recursion reads). Tokens
            of rows that only other sites have are missing.
    """

    supports: tuple[Support, ...]
    rows: dict[int, tuple[int, Row]]


def explain_row(operator: FixpointOperator, row: Row, limit: int = 16) -> Explanation | None:
    """Return at most `limit` supports of a row of a site's partition; None when it is not there."""
    view, partition = operator._view, operator._partition
    entry = view.entries.get(row)
    if entry is None or not entry.shown:
        return None
    view._restrict_alternatives(entry)
    parts = [part for part in (entry.sent, entry.buffered, *entry.received) if part is not None]
    if operator._shipping is Shipping.WITNESS:
        parts += partition._searcher()(row, limit)
    supports = [support for part in parts for support in operator.encoding.supports(part, limit)]
    minimal = least_supports(supports)[:limit]
    known = {
        token: (leaf, item.row)
        for tables in (partition.leaf_rows.joined, partition.leaf_rows.arrived)
        for leaf, table in enumerate(tables)
        for token, item in table.by_token.items()
    }
    mentioned = {token for support in minimal for token in support}
    return Explanation(minimal, {token: known[token] for token in mentioned & known.keys()})


def leaf_rows(operator: FixpointOperator, leaf: int) -> Iterator[tuple[int, Row]]:
    """Yield token and row (cut to `leaf_columns`) of the leaf rows that arrived at a site."""
    arrived = operator._leaf_rows.arrived[leaf]
    return ((token, item.row) for token, item in arrived.by_token.items())
