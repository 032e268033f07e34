"""Bounds on the new values of a recursion: counters, sums and loop checks.

All of them are read off traces, where column c of the k-th reading of the recursive relation has a
position of its own. The bounds hold for *passages*: (branch, occurrence) pairs through which a
chain of derivations goes on. A stopped passage is used a limited number of times on every chain.
"""

from dataclasses import dataclass

from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import Plan, Project
from streamsql.data.types import DataType
from streamsql.recursion.column_tracing import Trace, reads

Passages = set[tuple[int, int]]

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def constant_move(expression: Expression, position: int) -> float | None:
    """Return k when an expression is the column at a position plus a constant k, else None.

    Examples:
        >>> hops = Column(0, "hops", DataType.INTEGER)
        >>> constant_move(Call("+", (hops, Literal(1, DataType.INTEGER)), DataType.INTEGER), 0)
        1
    """
    match expression:
        case Column(position=found):
            return 0 if found == position else None
        case Call(function="CAST", arguments=(inner,)) if expression.dtype.is_numeric:
            return constant_move(inner, position)
        case Call(function="+" | "-" as sign, arguments=(left, Literal(value=value))):
            return _moved(constant_move(left, position), value, negative=sign == "-")
        case Call(function="+", arguments=(Literal(value=value), right)):
            return _moved(constant_move(right, position), value, negative=False)
        case _:
            return None


def _moved(start: float | None, value: object, *, negative: bool) -> float | None:
    if start is None or isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return start - value if negative else start + value


def is_limited(position: int, step: Trace, *, upward: bool) -> bool:
    """Whether a branch tests that a value of the relation is below, or above, a fixed bound."""
    for predicate in step.predicates:
        limited = limited_by(predicate)
        if limited is not None:
            expression, below = limited
            if below == upward and constant_move(expression, position) is not None:
                return True
    return False


def limited_by(predicate: Expression) -> tuple[Expression, bool] | None:
    """Return what a comparison with finitely many values limits, and whether from above.

    The other side of the comparison reads nothing of the recursive relation.
    """
    match predicate:
        case Call(function="<" | "<=" | ">" | ">=" as operator, arguments=(left, right)):
            if reads(left) and reads(right):
                return None
            if reads(right):
                return right, _FLIPPED[operator] in ("<", "<=")
            return left, operator in ("<", "<=")
        case _:
            return None


# --- counters ------------------------------------------------------------------------------------


def counted(traces: tuple[Trace, ...]) -> Passages:
    """Return the passages that a counter limits.

    A counter is a column that the branch moves by a constant in one direction and tests on that
    side, and that no other branch moves back.
    """
    if any(step.occurrences != 1 for step in traces):
        return set()  # a chain may go on through a reading whose counter is not kept
    return {
        (number, 0)
        for number, step in enumerate(traces)
        if any(_counts(column, number, traces) for column in range(step.width))
    }


def _counts(column: int, branch: int, traces: tuple[Trace, ...]) -> bool:
    moves = [constant_move(step.columns[column], column) for step in traces]
    own = moves[branch]
    if not own or not is_limited(column, traces[branch], upward=own > 0):
        return False
    return all(move is not None and move * own >= 0 for move in moves)


# --- sums ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Sum:
    """Positions that are added up, each as often as it occurs, and a constant."""

    positions: tuple[int, ...]
    constant: float


def positive_sums(base: tuple[Plan, ...], traces: tuple[Trace, ...]) -> frozenset[int]:
    """Return the columns whose values are positive because nothing else is ever added up.

    Every base branch gives a positive constant, and every step a sum of values of the column and
    of constants that are not negative: `hops` with a base of 1 and steps such as `a.hops + b.hops`.
    """
    return frozenset(
        column
        for column in range(traces[0].width if traces else 0)
        if all(_positive_constant(branch, column) for branch in base)
        and all(_sum(step.columns[column], column, step) is not None for step in traces)
    )


def _positive_constant(branch: Plan, column: int) -> bool:
    if not isinstance(branch, Project):
        return False
    expression = branch.expressions[column]
    return isinstance(expression, Literal) and _number(expression.value) > 0


def _number(value: object) -> float:
    """Return a numeric constant; anything else counts as negative."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else -1


def _sum(expression: Expression, column: int, step: Trace) -> _Sum | None:
    match expression:
        case Column(position=position) if position in reads(expression):
            return _Sum((position,), 0) if step.column_of(position) == column else None
        case Literal(value=value) if _number(value) > 0:
            return _Sum((), _number(value))
        case Call(function="CAST", arguments=(inner,), dtype=DataType.DOUBLE):
            return _sum(inner, column, step)
        case Call(function="+", arguments=(left, right)):
            one, other = _sum(left, column, step), _sum(right, column, step)
            if one is None or other is None:
                return None
            return _Sum(one.positions + other.positions, one.constant + other.constant)
        case _:
            return None


def is_limited_sum(column: int, step: Trace, positive: frozenset[int]) -> bool:
    """Whether a branch limits every value that it adds up in a column of positive values."""
    total = _sum(step.columns[column], column, step) if column in positive else None
    return total is not None and set(total.positions) <= _covered(step, positive)


def _covered(step: Trace, positive: frozenset[int]) -> set[int]:
    """Return the positions that are below a bound because a sum with them is."""
    found: set[int] = set()
    for predicate in step.predicates:
        limited = limited_by(predicate)
        if limited is not None and limited[1]:
            terms = _terms(limited[0])
            read = [reads(term) for term in terms]
            plain = all(isinstance(t, Column) for t, r in zip(terms, read, strict=True) if r)
            positions = set().union(*read)
            if plain and all(step.column_of(p) in positive for p in positions):
                found |= positions
    return found


def _terms(expression: Expression) -> list[Expression]:
    match expression:
        case Call(function="CAST", arguments=(inner,), dtype=DataType.DOUBLE):
            return _terms(inner)
        case Call(function="+", arguments=(left, right)):
            return _terms(left) + _terms(right)
        case Call(function="-", arguments=(left, right)) if not reads(right):
            return [*_terms(left), right]
        case _:
            return [expression]


def summed(base: tuple[Plan, ...], traces: tuple[Trace, ...]) -> Passages:
    """Return the passages that a sum of positive values limits.

    The sum takes in every reading of the branch, is limited there, and grows by each use of the
    branch; all other branches take in every reading too, so that it never shrinks.
    """
    positive = positive_sums(base, traces)
    found: Passages = set()
    for column in positive:
        sums = [_sum(step.columns[column], column, step) for step in traces]
        for number, step in enumerate(traces):
            own = sums[number]
            if own is None or not is_limited_sum(column, step, positive):
                continue
            grows = len(own.positions) > 1 or own.constant > 0
            if grows and all(map(_takes_in_all, sums, traces)):
                found |= {(number, occurrence) for occurrence in range(step.occurrences)}
    return found


def _takes_in_all(total: _Sum | None, step: Trace) -> bool:
    taken = {step.occurrence_of(p) for p in total.positions} if total is not None else set()
    return len(taken) == step.occurrences


# --- loop checks ---------------------------------------------------------------------------------


def loop_checks(branch: int, traces: tuple[Trace, ...]) -> list[tuple[int, frozenset[int]]]:
    """Return the loop checks of a branch.

    Returns:
        Per check the occurrence whose text is tested, and the columns that the tested values read;
        the check only counts when these columns have finitely many values.
    """
    step = traces[branch]
    found = []
    for predicate in step.predicates:
        check = _loop_check(predicate)
        if check is None:
            continue
        text, tested = check
        column = step.column_of(text)
        appended = operands(step.columns[column])
        keeps = all(_keeps(column, other) for other in traces)
        if keeps and tested and all(value in appended for value in tested):
            read = frozenset(c for value in tested for c in step.columns_read(value))
            found.append((step.occurrence_of(text), read))
    return found


def _keeps(column: int, step: Trace) -> bool:
    """Whether a branch keeps the text of every reading in the text it makes."""
    kept = {o.position for o in operands(step.columns[column]) if isinstance(o, Column)}
    return all(k * step.width + column in kept for k in range(step.occurrences))


def _loop_check(predicate: Expression) -> tuple[int, list[Expression]] | None:
    """Return (position of the text, values it must not contain) of a loop check."""
    match predicate:
        case Call(
            function="NOT",
            arguments=(Call(function="LIKE" | "LIKE ESCAPE", arguments=(text, pattern, *_)),),
        ):
            needle = pattern
        case (
            Call(
                function="=",
                arguments=(Call(function="POSITION", arguments=(needle, text)), Literal(value=0)),
            )
            | Call(
                function="=",
                arguments=(Literal(value=0), Call(function="POSITION", arguments=(needle, text))),
            )
            | Call(
                function="<",
                arguments=(Call(function="POSITION", arguments=(needle, text)), Literal(value=1)),
            )
        ):
            pass
        case _:
            return None
    if not isinstance(text, Column) or not reads(text):
        return None
    return text.position, [o for o in operands(needle) if not isinstance(o, Literal)]


def operands(expression: Expression) -> list[Expression]:
    """Return what a concatenation joins; the expression itself when it is none."""
    match expression:
        case Call(function="||", arguments=arguments):
            return [operand for argument in arguments for operand in operands(argument)]
        case _:
            return [expression]
