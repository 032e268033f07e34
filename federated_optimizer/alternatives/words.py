"""Reasons in words: why a piece was not pushed further."""

from collections.abc import Iterable

from federated_optimizer.alternatives.pieces import (
    BasePiece,
    GatewayPiece,
    NetworkPiece,
    Piece,
    StaticPiece,
)
from streamsql.algebra.explain import describe
from streamsql.algebra.expressions import expression_text
from streamsql.algebra.operators import AsOfJoin, Join, Plan, SetOperation
from streamsql.catalog.system import is_system_table


def materialized_reason(table: str) -> str:
    """Return why what reads a materialized table is at the base."""
    return f"what reads {table} because: it is MATERIALIZED, and its readings share one fragment"


def network_reason(plan: Plan) -> str:
    """Return why an operator is not computed by the gateways of a recursion."""
    return f"{describe(plan)} because: it combines rows of different gateways"


def chosen_reason(plan: Plan) -> str:
    """Return why an operator is not at the gateways, which could compute it."""
    return f"{describe(plan)} because: the plan that was chosen sends its input instead"


def filter_reason(predicate: str) -> str:
    """Return why a filter stands at the base."""
    return f"[{predicate}] because: the operators below it compute its columns"


def different_places(left: Piece, right: Piece) -> str:
    """Return where the two sides of an operator are."""
    return f"{_place_words(left)}, {_place_words(right)}"


def join_words(plan: Join | AsOfJoin | SetOperation) -> str:
    """Return an operator over two inputs as reasons name it."""
    if not isinstance(plan, Join):
        return describe(plan)
    left, right = plan.left.schema.names, plan.right.schema.names
    keys = " AND ".join(f"{left[a]} = {right[b]}" for a, b in plan.keys)
    if not keys and plan.residual is not None:
        keys = expression_text(plan.residual)
    return f"{plan.kind.capitalize()}Join [{keys or 'product'}]"


def names_text(names: Iterable[str]) -> str:
    """Return `a and b`."""
    return " and ".join(names)


def _place_words(piece: Piece) -> str:
    match piece:
        case GatewayPiece(sources=sources):
            return f"{names_text(sources)} {_verb(sources)} at gateways"
        case StaticPiece(tables=tables) if all(map(is_system_table, tables)):
            return f"{names_text(tables)} {_verb(tables)} kept by the coordinator"
        case StaticPiece(tables=tables):
            return f"{names_text(tables)} {_verb(tables)} stored at the static engine"
        case NetworkPiece():
            return "one side is a recursion that gateways compute together"
        case BasePiece():
            return "one side is merged at the base"


def _verb(names: tuple[str, ...]) -> str:
    return "is" if len(names) == 1 else "are"
