"""Why a row is in a recursive view, as far as the site that has it knows."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from stream_engine.provenance.annotation import AnnotationEncoding, Support, least_supports
from stream_engine.recursion.program.leaves import LeafStore
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


def explanation_of(
    annotations: Iterable[Any], encoding: AnnotationEncoding[Any], leaves: LeafStore, limit: int
) -> Explanation:
    """Return the explanation of a row from the parts of its annotation."""
    supports: list[Support] = []
    for part in annotations:
        supports.extend(encoding.supports(part, limit))
    minimal = least_supports(supports)[:limit]
    found = {token: leaves.row_of(token) for support in minimal for token in support}
    rows = {token: place for token, place in found.items() if place is not None}
    return Explanation(minimal, rows)
