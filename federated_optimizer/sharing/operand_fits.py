"""Operands of a wanted set operator over those of an offered one, through one and the same leaf.

A leaf of a set operator mixes the rows of all operands. So one filter and one list of columns over
the leaf have to make each offered operand the wanted one that it stands for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from federated_optimizer.rules.merge_filters import filtered
from federated_optimizer.sharing.forms.alignment import Available, aligned, rewritten
from federated_optimizer.sharing.forms.blocks import Block, block_of
from federated_optimizer.sharing.forms.known_times import known_times
from federated_optimizer.sharing.forms.residuals import residual
from streamsql.algebra.expressions import Column, Expression
from streamsql.algebra.operators import Plan, Project, identity_columns

MAX_STEPS = 2_000
"""Steps of the search for operands that fit; of more none is found."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A wanted operand over an offered one.

    Attributes:
        rest: Predicates over the leaf that remain.
        columns: Per wanted column the expressions over the leaf that give it.
    """

    rest: frozenset[Expression]
    columns: tuple[frozenset[Expression], ...]


def fits(wanted: Plan, offered: Block, leaf: Plan) -> list[Fit]:
    """Return the ways in which an operand comes from an offered one, over the columns of a leaf.

    Args:
        wanted: The operand.
        offered: The other one; its outputs are the columns of the leaf.
        leaf: The rows of all offered operands.
    """
    available = Available.of(offered)
    texts = [available.text(e) for e in offered.outputs]
    found: list[Fit] = []
    for moved in aligned(block_of(wanted), offered):
        left = residual(moved.predicates, offered.predicates, known_times(moved))
        if left is None:
            continue
        rest = [rewritten(p, available, leaf) for p in left]
        columns: list[frozenset[Expression]] = []
        for output in moved.outputs:
            text = available.text(output)
            same = {_column(leaf, n) for n, other in enumerate(texts) if other == text}
            made = rewritten(output, available, leaf)
            columns.append(frozenset(same or ({made} if made is not None else ())))
        kept = frozenset(p for p in rest if p is not None)
        if None not in rest and all(columns):
            found.append(Fit(kept, tuple(columns)))
    return list(dict.fromkeys(found))


def _column(leaf: Plan, place: int) -> Expression:
    shown = leaf.schema.fields[place]
    return Column(place, shown.name, shown.dtype)


@dataclass(frozen=True, slots=True)
class Fitted:
    """All offered operands, each as a wanted one.

    Attributes:
        chosen: The number of the wanted operand, by offered operand.
        rest: Predicates over the leaf.
        columns: Over the leaf.
    """

    chosen: tuple[int, ...]
    rest: frozenset[Expression]
    columns: tuple[Expression, ...]

    def over(self, leaf: Plan, names: tuple[str, ...]) -> Plan:
        """Return the rows of the wanted operands that were chosen."""
        rows = filtered(leaf, sorted(self.rest, key=repr))
        if self.columns == identity_columns(rows.schema) and names == rows.schema.names:
            return rows
        return Project(rows, self.columns, names)


@dataclass(frozen=True, slots=True)
class Matching:
    """The demands on operands that fit.

    Attributes:
        once: Whether no two offered operands stand for the same wanted one.
        one_for_one: Whether wanted columns are all offered ones in some order: operators that
            compare rows keep their rows only then.
        filter_any: Whether an offered operand may stand for a wanted one that is not filtered, too.
    """

    once: bool
    one_for_one: bool = False
    filter_any: bool = False


def fitted(table: Sequence[Sequence[Sequence[Fit]]], matching: Matching) -> Fitted | None:
    """Return wanted operands for all offered ones; None: there are none.

    Args:
        table: Per offered operand and wanted operand the fits.
        matching: What is demanded.
    """
    for count, found in enumerate(_extended(table, matching, (), None, None)):
        if count == MAX_STEPS:
            return None
        if found is not None:
            return found
    return None


def _extended(
    table: Sequence[Sequence[Sequence[Fit]]],
    matching: Matching,
    chosen: tuple[int, ...],
    rest: frozenset[Expression] | None,
    columns: tuple[frozenset[Expression], ...] | None,
) -> Iterator[Fitted | None]:
    """Yield matchings; None for each step that is taken."""
    yield None
    if len(chosen) == len(table):
        picked = _picked(columns or (), matching)
        if picked is not None:
            yield Fitted(chosen, rest or frozenset(), picked)
        return
    for number, ways in enumerate(table[len(chosen)]):
        if matching.once and number in chosen:
            continue
        for fit in ways:
            both = _common_rest(rest, fit.rest, matching)
            shared = _common(columns, fit.columns)
            if both is not None and shared is not None:
                yield from _extended(table, matching, (*chosen, number), both, shared)


def _common_rest(
    known: frozenset[Expression] | None, other: frozenset[Expression], matching: Matching
) -> frozenset[Expression] | None:
    if known is None or known == other:
        return other
    if matching.filter_any and not (known and other):
        return known or other
    return None


def _common(
    known: tuple[frozenset[Expression], ...] | None, other: tuple[frozenset[Expression], ...]
) -> tuple[frozenset[Expression], ...] | None:
    both = other if known is None else tuple(a & b for a, b in zip(known, other, strict=True))
    return both if all(both) else None


def _picked(
    columns: tuple[frozenset[Expression], ...], matching: Matching
) -> tuple[Expression, ...] | None:
    """Return one expression for each wanted column."""
    if not matching.one_for_one:
        return tuple(min(each, key=repr) for each in columns)
    picked: list[Expression] = []
    for each in columns:
        left = [e for e in sorted(each, key=repr) if isinstance(e, Column) and e not in picked]
        if not left:
            return None
        picked.append(left[0])
    return tuple(picked)
