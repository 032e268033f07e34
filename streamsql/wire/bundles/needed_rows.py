"""The rows of a fragment that a plan does not drop at once, and values to find them by.

Sites look readers up by these (`stream_engine/exchange/filter_bank.py`), and the optimizer prices
what a reader is asked for (`federated_optimizer/costs/handed_rows.py`).

A value is that of a column, or of any expression over a row, such as `a - b` or `LOWER(s)`: it is
computed once for all readers that compare it with constants. `s LIKE 'ab%'` is a range of texts,
`s LIKE '%ab%'` a piece of them, and `a > b + 3` turns where the constant inside is `a - b`.

Comparisons are those of generated code (`scalar_functions.scalar`): of Python's values, never TRUE
for NULL. A plan evaluates its predicates itself, too: nothing rests on what is left out here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isnan

from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    conjunction,
    conjuncts,
    disjuncts,
    substituted,
    walk,
)
from streamsql.algebra.operators import Filter, Plan, Project, RemoteSource
from streamsql.algebra.scalar_functions.like_patterns import like_pattern, text_behind
from streamsql.algebra.user_functions import is_user_function
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.bundles.reader_conditions import (
    AnyOf,
    Bound,
    Containing,
    OneOf,
    RowCondition,
    Simple,
    Term,
    Turning,
    Within,
    branches,
    term_of,
)
from streamsql.wire.bundles.turning_constants import turning

MAX_LISTED = 1_000
"""Values of an IN list by which rows are looked up; for a longer one each row is looked at."""

MAX_BRANCHES = 20
"""Branches of a disjunction by which rows are looked up: each is an entry of a bank."""

_TURNED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NUMBERS = (DataType.INTEGER, DataType.DOUBLE, DataType.TIMESTAMP, DataType.INTERVAL)


@dataclass(frozen=True, slots=True)
class NeededRows:
    """The rows of a relation that a reader may need.

    Attributes:
        condition: By which they can be looked up, or None.
        predicate: What is TRUE for them besides, or None.
    """

    condition: RowCondition | None = None
    predicate: Expression | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """A place where a plan reads a relation.

    Attributes:
        leaf: What is read there.
        above: The filters and projections right above it, lowest first.
        predicates: Over the columns of the leaf; a row is dropped where one of them is not TRUE.
    """

    leaf: Plan
    above: tuple[Plan, ...]
    predicates: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class LookedUp:
    """Predicates of a reading, as a site evaluates them.

    Attributes:
        condition: By which rows are looked up; None: each row is looked at.
        by: The predicates that say no more than the condition.
        rest: Those that are evaluated besides. Functions of users are in neither.
    """

    condition: RowCondition | None
    by: list[Expression]
    rest: list[Expression]


def needed_rows(plans: Iterable[Plan], fragment: str, schema: Schema) -> NeededRows:
    """Return which rows of a fragment plans may need.

    They may need all where the fragment is read twice, or where it is not below a filter;
    projections may be in between. Functions of users are left to the plans: they take the time
    of the query that calls them, and may fail.

    Args:
        plans: All that may read the fragment.
        fragment: Its id.
        schema: Its columns.
    """

    def is_read(part: Plan) -> bool:
        return isinstance(part, RemoteSource) and part.fragment == fragment

    found = [read for plan in plans for read in readings(plan, is_read)]
    if len(found) != 1:
        return NeededRows()
    split = looked_up(found[0].predicates, schema)
    return NeededRows(split.condition, conjunction(split.rest))


def looked_up(predicates: Iterable[Expression], schema: Schema) -> LookedUp:
    """Return how a site finds the rows for which all of some predicates are TRUE.

    Args:
        predicates: Each drops a row if it is not TRUE.
        schema: The columns of the rows.
    """
    plain = [p for p in predicates if all(_is_plain(schema, part) for part in walk(p))]
    found = [_found(predicate) for predicate in plain]
    chosen = _chosen([each.condition for each in found if each])
    by, rest = list[Expression](), list[Expression]()
    for predicate, each in zip(plain, found, strict=True):
        (by if _covers(chosen, each) else rest).append(predicate)
    return LookedUp(chosen, by, rest)


@dataclass(frozen=True, slots=True)
class _Found:
    """A condition that holds wherever a predicate is TRUE.

    Attributes:
        is_exact: Whether the predicate is TRUE wherever the condition holds.
    """

    condition: RowCondition
    is_exact: bool = True


def _chosen(conditions: Sequence[RowCondition]) -> RowCondition | None:
    """Return the condition that few rows fulfil: a list of values, else bounds on both sides."""
    others = [condition for condition in conditions if not isinstance(condition, Within)]
    bounds = [condition for condition in conditions if isinstance(condition, Within)]
    joined = [_both(bounds, term) for term in dict.fromkeys(b.term for b in bounds)]
    return min([*others, *joined], key=_order, default=None)


def _order(condition: RowCondition) -> tuple[int, bool, int, bool]:
    """Return an order in which conditions come first that few rows fulfil, and columns."""
    each = branches(condition)
    values = sum(len(b.values) for b in each if isinstance(b, OneOf))
    computed = any(isinstance(b.term.expression, Call) for b in each)
    return max(map(_breadth, each), default=0), len(each) > 1, values, computed


def _breadth(condition: Simple) -> int:
    match condition:
        case OneOf():
            return 0
        case Within(low=(_, _), high=(_, _)):
            return 1
        case Containing():
            return 2
        case _:
            return 3


def _covers(chosen: RowCondition | None, other: _Found | None) -> bool:
    """Return whether the chosen condition holds only where another predicate is TRUE."""
    if other is None or not other.is_exact:
        return False
    if isinstance(chosen, Within):
        return isinstance(other.condition, Within) and chosen.term == other.condition.term
    return chosen == other.condition


def readings(
    plan: Plan,
    is_read: Callable[[Plan], bool],
    above: tuple[Plan, ...] = (),
    predicates: tuple[Expression, ...] = (),
) -> Iterator[Reading]:
    """Yield where a plan reads something, with the predicates that drop rows of it at once.

    Args:
        plan: The reader, or a part of it.
        is_read: Returns whether a part of the plan is what is read.
        above: The filters and projections right above the part, lowest first.
        predicates: Over the columns of the part; its rows are dropped where one is not TRUE.
    """
    if is_read(plan):
        yield Reading(plan, above, predicates)
        return
    match plan:
        case Filter(input=child, predicate=predicate):
            both = (*predicates, *conjuncts(predicate))
            yield from readings(child, is_read, (plan, *above), both)
        case Project(input=child, expressions=expressions):
            moved = [substituted(predicate, expressions) for predicate in predicates]
            below = tuple(predicate for predicate in moved if predicate is not None)
            yield from readings(child, is_read, (plan, *above), below)
        case _:
            for child in plan.inputs:
                yield from readings(child, is_read)


def _found(predicate: Expression) -> _Found | None:
    match predicate:
        case Call(function="=" | "<" | "<=" | ">" | ">=" as name, arguments=(left, right)):
            match left, right:
                case Column() | Call(), Literal():
                    return _comparison(left, name, right)
                case Literal(), Column() | Call():
                    return _comparison(right, _TURNED[name], left)
                case _:
                    turned = turning(predicate)
                    return None if turned is None else _Found(turned)
        case Call(function="IN", arguments=(Column() | Call() as needle, *candidates)):
            return _one_of(needle, candidates)
        case Call(function="LIKE" | "LIKE ESCAPE", arguments=(Column() | Call() as text, *rest)):
            return _like(text, rest)
        case Call(function="OR"):
            return _any_of(disjuncts(predicate))
        case Call(function="AND"):
            return _all_of(conjuncts(predicate))
        case _:
            return None


def _comparison(compared: Expression, name: str, literal: Literal) -> _Found | None:
    value = literal.value
    if value is None or not _is_comparable(compared, value):
        return None
    term = term_of(compared)
    match name:
        case "=":
            return _Found(OneOf(term, frozenset((value,))))
        case ">" | ">=":
            return _Found(Within(term, low=(value, int(name == ">"))))
        case _:
            return _Found(Within(term, high=(value, int(name == "<="))))


def _one_of(needle: Expression, candidates: Sequence[Expression]) -> _Found | None:
    values = [c.value for c in candidates if isinstance(c, Literal) and c.value is not None]
    literals = sum(isinstance(c, Literal) for c in candidates)
    if literals < len(candidates) or not all(_is_comparable(needle, v) for v in values):
        return None
    # A value takes 340 bytes in a bank; to evaluate a list takes no longer than to look it up.
    found = frozenset(values)
    return _Found(OneOf(term_of(needle), found)) if len(found) <= MAX_LISTED else None


def _like(text: Expression, rest: Sequence[Expression]) -> _Found | None:
    """Return the texts with the beginning of a pattern, or else with its longest piece."""
    written = [p.value for p in rest if isinstance(p, Literal) and isinstance(p.value, str)]
    pattern = like_pattern(*written) if len(written) == len(rest) else None
    if pattern is None or text.dtype != DataType.TEXT:
        return None
    term, prefix, piece = term_of(text), pattern.prefix, pattern.longest_piece
    if pattern.is_of(prefix):
        return _Found(OneOf(term, frozenset((prefix,))))
    behind = text_behind(prefix)
    if behind is not None:
        return _Found(Within(term, (prefix, 0), (behind, 0)), pattern.is_of(prefix, ""))
    return _Found(Containing(term, piece), pattern.is_of("", piece, "")) if piece else None


def _any_of(parts: Sequence[Expression]) -> _Found | None:
    """Return a condition that holds where one of several does; lists of one term are joined."""
    values: dict[Term, set[Bound]] = {}
    others: dict[Within | Containing | Turning, None] = {}
    is_exact = True
    for part in parts:
        found = _found(part)
        if found is None:
            return None
        is_exact &= found.is_exact
        for branch in branches(found.condition):
            if isinstance(branch, OneOf):
                values.setdefault(branch.term, set()).update(branch.values)
            else:
                others[branch] = None
    lists = [OneOf(term, frozenset(listed)) for term, listed in values.items()]
    every: tuple[Simple, ...] = (*lists, *others)
    if len(every) > MAX_BRANCHES or sum(map(len, values.values())) > MAX_LISTED:
        return None
    return _Found(every[0] if len(every) == 1 else AnyOf(every), is_exact)


def _all_of(parts: Sequence[Expression]) -> _Found | None:
    """Return a condition that holds where all of several do, in a disjunction."""
    found = [_found(part) for part in parts]
    chosen = _chosen([each.condition for each in found if each])
    if chosen is None:
        return None
    return _Found(chosen, all(_covers(chosen, each) for each in found))


def _is_plain(schema: Schema, part: Expression) -> bool:
    """Return whether a part of a predicate may be evaluated for a row of a fragment."""
    match part:
        case Column():  # values of another type could not be compared
            is_there = part.position < len(schema)
            return is_there and schema.dtypes[part.position] == part.dtype
        case Call():
            return not is_user_function(part.function)
        case _:
            return True


def _is_comparable(compared: Expression, value: Bound) -> bool:
    """Return whether a constant has the type of an expression's values, and equals itself."""
    if compared.dtype == DataType.TEXT:
        return isinstance(value, str)
    if compared.dtype == DataType.BOOLEAN:
        return isinstance(value, bool)
    if isinstance(value, bool | str) or compared.dtype not in _NUMBERS:
        return False
    return not isnan(value)


def _both(bounds: Iterable[Within], term: Term) -> Within:
    """Return the narrowest bounds of a term."""
    of_term = [bound for bound in bounds if bound.term == term]
    lows = [bound.low for bound in of_term if bound.low is not None]
    highs = [bound.high for bound in of_term if bound.high is not None]
    return Within(term, max(lows, default=None), min(highs, default=None))
