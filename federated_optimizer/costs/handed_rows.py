"""The rows of a fragment that its reader looks at, at the site that has them.

A site looks up who needs a row by one comparison with a constant, of those right above the fragment
(`stream_engine/exchange/needed_rows.py`). So a reader with such a comparison is not asked for the
rows that fail it; any other reader is asked for each row, whatever it drops then.
"""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    conjunction,
    conjuncts,
    substituted,
)
from streamsql.algebra.operators import Filter, Plan, Project


@dataclass(frozen=True, slots=True)
class HandedRows:
    """A reading of a fragment.

    Attributes:
        above: The filters and projections right above it, lowest first.
        asked: The plan of the rows for which the reader is asked.
    """

    above: tuple[Plan, ...]
    asked: Plan


def handed_rows(plan: Plan, fragments: Sequence[Plan]) -> Iterator[HandedRows]:
    """Yield what a plan reads of fragments that are parts of it, as they are.

    A fragment that is read twice is handed on whole, once.
    """
    known = {id(fragment): fragment for fragment in fragments}
    chains: dict[int, list[tuple[Plan, ...]]] = {name: [] for name in known}
    for above, name in _chains(plan, known.keys(), ()):
        chains[name].append(above)
    for name, found in chains.items():
        above = found[0] if len(found) == 1 else ()
        yield HandedRows(above, _asked(known[name], above))


def _chains(
    plan: Plan, fragments: Container[int], above: tuple[Plan, ...]
) -> Iterator[tuple[tuple[Plan, ...], int]]:
    """Yield the chain above each reading, lowest first, with the id of what is read."""
    if id(plan) in fragments:
        yield above, id(plan)
        return
    chain = (plan, *above) if isinstance(plan, Filter | Project) else ()
    for child in plan.inputs:
        yield from _chains(child, fragments, chain)


def _asked(fragment: Plan, above: Sequence[Plan]) -> Plan:
    looked_up: list[Expression] = []
    shown: tuple[Expression, ...] | None = None
    for node in above:
        if isinstance(node, Filter):
            parts = conjuncts(node.predicate)
            moved = parts if shown is None else _moved(parts, shown)
            looked_up += [part for part in moved if _is_looked_up(part)]
        elif isinstance(node, Project):
            below = node.expressions if shown is None else _moved(node.expressions, shown)
            if len(below) < len(node.expressions):
                break
            shown = tuple(below)
    condition = conjunction(looked_up)
    return fragment if condition is None else Filter(fragment, condition)


def _moved(expressions: Sequence[Expression], shown: Sequence[Expression]) -> list[Expression]:
    """Return expressions over what a projection reads, without those that cannot be moved."""
    moved = (substituted(expression, shown) for expression in expressions)
    return [expression for expression in moved if expression is not None]


def _is_looked_up(predicate: Expression) -> bool:
    match predicate:
        case Call(function="=" | "<" | "<=" | ">" | ">=", arguments=(left, right)):
            return {type(left), type(right)} == {Column, Literal}
        case Call(function="IN", arguments=(Column(), *candidates)):
            return all(isinstance(candidate, Literal) for candidate in candidates)
        case Call(function="OR", arguments=parts):
            columns = {_column_of_values(part) for part in parts}
            return None not in columns and len(columns) == 1
        case _:
            return False


def _column_of_values(predicate: Expression) -> int | None:
    match predicate:
        case Call(function="=" | "IN", arguments=arguments) if _is_looked_up(predicate):
            return next(each.position for each in arguments if isinstance(each, Column))
        case _:
            return None


def operators_above(plan: Plan, fragments: Sequence[Plan]) -> Iterator[Plan]:
    """Yield the operators of a plan that are no part of fragments in it."""
    known = {id(fragment) for fragment in fragments}
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if id(node) not in known:
            yield node
            waiting.extend(node.inputs)
