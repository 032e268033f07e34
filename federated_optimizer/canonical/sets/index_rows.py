"""Rows of the system's tables that say what an index of predicate sets holds, and back.

| relation       | columns                                                    | key               |
|----------------|------------------------------------------------------------|-------------------|
| literals       | literal, term, values, form                                | literal           |
| disjunctions   | disjunction, literal                                       | both              |
| predicate sets | predicate_set, disjunction                                 | both              |

Names of literals and disjunctions are digests of what they say: the same condition has the same
name at any time and in any process, so rows of two moments can be compared. `term` and `values` are
for people; columns are `#` and their number. `form` is the literal in JSON, whole numbers of any
size as texts. A set without disjunctions lets everything through; it has one row, with an empty
disjunction. One that lets nothing through has a disjunction without literals, named `never`.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from hashlib import sha256
from typing import NamedTuple, TypeVar

import msgspec

from federated_optimizer.canonical.conditions.normal_forms import Clause
from federated_optimizer.canonical.conditions.terms import Condition, Term
from federated_optimizer.canonical.linear_comparisons import Number
from federated_optimizer.canonical.regions.regions import Cut, Domain, Region, Span
from federated_optimizer.canonical.sets.predicate_index import PredicateIndex
from federated_optimizer.canonical.sets.predicate_sets import PredicateSet
from streamsql.algebra.expressions import Expression

_DIGITS = 16
NEVER = "never"
"""Name of the disjunction without literals."""

Found = TypeVar("Found")


class IndexRows(NamedTuple):
    """Rows of the three relations, sorted."""

    literals: list[tuple[str, str, str, str]]
    disjunctions: list[tuple[str, str]]
    predicate_sets: list[tuple[str, str]]


class _Form(msgspec.Struct, frozen=True):
    """A condition as it is written in JSON."""

    domain: Domain
    parts: list[tuple[Expression, str]]
    spans: list[tuple[tuple[int, str, int], tuple[int, str, int]]]
    nan: bool
    null: bool


def index_rows(index: PredicateIndex[str] | Mapping[str, PredicateSet]) -> IndexRows:
    """Return the rows that say what an index holds, or one of sets by their key would."""
    literals: dict[str, tuple[str, str, str, str]] = {}
    disjunctions: set[tuple[str, str]] = set()
    sets: set[tuple[str, str]] = set()
    for key in index:
        clauses = index[key].clauses
        if not clauses:
            sets.add((key, ""))
        for clause in clauses:
            rows = sorted(literal_row(each) for each in clause)
            literals.update({row[0]: row for row in rows})
            name = _digest(" ".join(row[0] for row in rows)) if rows else NEVER
            disjunctions.update((name, row[0]) for row in rows)
            sets.add((key, name))
    return IndexRows(sorted(literals.values()), sorted(disjunctions), sorted(sets))


def index_of_rows(rows: IndexRows, given: Sequence[Expression] = ()) -> PredicateIndex[str]:
    """Return the index that rows tell of: it finds what the one that they are of finds.

    Args:
        rows: Of an index.
        given: Predicates that are TRUE of all rows there are; those of the index.

    Raises:
        ValueError: A row names another one that is missing, or a form cannot be read.
    """
    conditions = {name: read_form(form) for name, _, _, form in rows.literals}
    clauses: dict[str, set[Condition]] = {NEVER: set()}
    for name, literal in rows.disjunctions:
        clauses.setdefault(name, set()).add(_named(conditions, literal, "literal"))
    sets: dict[str, list[Clause]] = {}
    for key, name in rows.predicate_sets:
        found = sets.setdefault(key, [])
        if name:
            found.append(frozenset(_named(clauses, name, "disjunction")))
    index: PredicateIndex[str] = PredicateIndex()
    for key, parts in sets.items():
        index.add(key, PredicateSet(parts, given=given))
    return index


def _named(found: Mapping[str, Found], name: str, kind: str) -> Found:
    if name not in found:
        raise ValueError(f"there is no {kind} {name}")
    return found[name]


def literal_row(condition: Condition) -> tuple[str, str, str, str]:
    """Return the row of a condition: its name, its term and values in words, and its form."""
    form = written_form(condition)
    return _digest(form), condition.term.text, values_text(condition.region), form


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:_DIGITS]


def written_form(condition: Condition) -> str:
    """Return a condition as JSON."""
    term, region = condition.term, condition.region
    parts = [(part, str(factor)) for part, factor in term.parts]
    spans = [(_written(low), _written(high)) for low, high in region.spans]
    form = _Form(term.domain, parts, spans, region.nan, region.null)
    return msgspec.json.encode(form).decode()


def read_form(text: str) -> Condition:
    """Return the condition of a form.

    Raises:
        ValueError: It is none.
    """
    form = msgspec.json.decode(text, type=_Form)
    term = Term(tuple((part, int(factor)) for part, factor in form.parts), form.domain)
    spans = tuple((_read(low, form.domain), _read(high, form.domain)) for low, high in form.spans)
    return Condition(term, Region(form.domain, spans, form.nan, form.null))


def _written(cut: Cut) -> tuple[int, str, int]:
    rank, value, side = cut
    return rank, str(value), side


def _read(cut: tuple[int, str, int], domain: Domain) -> Cut:
    rank, text, side = cut
    if rank:
        return rank, 0, 0
    if domain == Domain.TEXT:
        return rank, text, side
    number = Fraction(text)
    return rank, number.numerator if number.denominator == 1 else number, side


def values_text(region: Region) -> str:
    """Return the values of a region in words.

    Examples:
        >>> from federated_optimizer.canonical.regions.regions import compared
        >>> (
        ...     values_text(compared(Domain.WHOLE, "<>", 3)),
        ...     values_text(compared(Domain.DENSE, ">", 1)),
        ... )
        ('<= 2 or >= 4', '> 1')
    """
    parts = [_span_text(span) for span in region.spans]
    parts += [word for word, has in (("NaN", region.nan), ("NULL", region.null)) if has]
    return " or ".join(parts) or "nothing"


def _span_text(span: Span) -> str:
    (low_rank, low, low_side), (high_rank, high, high_side) = span
    if low_rank and high_rank:
        return "any value"
    if not low_rank and not high_rank and low == high:
        return f"= {_value(low)}"
    ends = []
    if not low_rank:
        ends.append(f"{'>' if low_side > 0 else '>='} {_value(low)}")
    if not high_rank:
        ends.append(f"{'<' if high_side < 0 else '<='} {_value(high)}")
    return " and ".join(ends)


def _value(value: Number) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value) if isinstance(value, int) else repr(float(value))
