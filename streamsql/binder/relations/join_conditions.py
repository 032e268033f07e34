"""Join conditions: USING and NATURAL JOIN, and the ON of ASOF JOIN."""

from dataclasses import dataclass

from sqlglot import exp

from streamsql.algebra.expressions import Call, Column, Expression
from streamsql.binder.names.environment import Environment, Scope, ScopeColumn, identifier_text
from streamsql.binder.relations.join_tree import AsOf, JoinType
from streamsql.data.types import DataType

_ASOF_HINT = "a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts"
_BACKWARD = {"<=": ">=", "<": ">"}


@dataclass(frozen=True, slots=True)
class Merged:
    """Two scopes joined by USING or NATURAL.

    Attributes:
        scope: Both, the merged columns first, each once.
        on: The equalities.
        computed: Merged columns that are neither side's, by their new numbers.
    """

    scope: Scope
    on: tuple[Expression, ...]
    computed: dict[int, Expression]


def using(  # noqa: PLR0913, PLR0917  (both sides, and what they are joined by)
    names: list[exp.Expr],
    left: Scope,
    right: Scope,
    kind: JoinType,
    width: int,
    environment: Environment,
) -> Merged:
    """Return what `USING (names)` means.

    `width` is the first free column number.
    """
    _check_once(names, environment)
    pairs = [_pair(name, left, right, environment) for name in names]
    both = left + right
    on = tuple(Call("=", (both.read(a), both.read(b)), DataType.BOOLEAN) for a, b in pairs)
    computed: dict[int, Expression] = {}
    merged = []
    for one, two in pairs:
        wide = DataType.DOUBLE if one.dtype != two.dtype else one.dtype
        found = _one_of(one, two, kind, wide)
        if found is None:
            found = ScopeColumn("", one.name, wide, width + len(computed))
            sides = {JoinType.LEFT: (one,), JoinType.RIGHT: (two,)}.get(kind, (one, two))
            parts = tuple(_as(both.read(column), wide) for column in sides)
            alone = len(parts) == 1
            computed[found.position] = parts[0] if alone else Call("COALESCE", parts, wide)
        merged.append(found)
    hidden = both.hiding([c.position for pair in pairs for c in pair])
    taken = {column.position for column in merged}
    others = tuple(c for c in hidden.columns if c.position not in taken)
    return Merged(Scope((*merged, *others)), on, computed)


def _one_of(
    one: ScopeColumn, two: ScopeColumn, kind: JoinType, wide: DataType
) -> ScopeColumn | None:
    """Return the side whose value and type a merged column has, or None where it is computed."""
    # Rows of an inner join, and of SEMI and ANTI JOIN as far as they are read, have equal values.
    sides = {JoinType.LEFT: (one,), JoinType.RIGHT: (two,), JoinType.FULL: ()}.get(kind, (one, two))
    return next((side for side in sides if side.dtype == wide), None)


def _check_once(names: list[exp.Expr], environment: Environment) -> None:
    seen: set[str] = set()
    for name in names:
        text = identifier_text(name)
        if text in seen:
            raise environment.error(
                name,
                f"USING names {text!r} twice",
                hint="name each column once",
                code="duplicate_name",
            )
        seen.add(text)


def _as(column: Column, dtype: DataType) -> Expression:
    return column if column.dtype == dtype else Call("CAST", (column,), dtype)


def natural(join: exp.Expr, left: Scope, right: Scope, environment: Environment) -> list[exp.Expr]:
    """Return the columns of a NATURAL JOIN: those of the same name on both sides."""
    there = {column.name for column in right.visible()}
    shared = list(dict.fromkeys(c.name for c in left.visible() if c.name in there))
    if not shared:
        raise environment.error(
            join,
            "NATURAL JOIN: no column has the same name on both sides",
            hint="JOIN t ON a.x = t.y, or CROSS JOIN t for every pair",
            code="unknown_column",
        )
    names: list[exp.Expr] = []
    for name in shared:
        identifier = exp.to_identifier(name, quoted=True)
        identifier.meta.update(join.this.meta)
        names.append(identifier)
    return names


def _pair(
    name: exp.Expr, left: Scope, right: Scope, environment: Environment
) -> tuple[ScopeColumn, ScopeColumn]:
    column = exp.Column(this=name.copy())
    column.meta.update(name.meta)
    one = left.resolve(column, environment)
    two = right.resolve(column, environment)
    numeric = one.dtype.is_numeric and two.dtype.is_numeric
    if one.dtype != two.dtype and not numeric:
        raise environment.type_mismatch(
            name,
            f"{identifier_text(name)!r} is {one.dtype} on one side and {two.dtype} on the other",
            "JOIN … ON CAST(a.x AS …) = b.x",
        )
    return one, two


def as_of(
    on: list[Expression], left: set[int], right: set[int], node: exp.Expr, environment: Environment
) -> AsOf:
    """Return the condition of an as-of join: equalities, and one `left time >= right time`.

    `on` reads column numbers; `left` and `right` are the numbers of either side's columns.
    """
    keys: list[tuple[int, int]] = []
    times: list[tuple[int, int, bool]] = []
    for predicate in on:
        operator, one, two = _sides(predicate, left, right)
        if operator == "=":
            keys.append((one, two))
        elif operator in (">=", ">"):
            times.append((one, two, operator == ">"))
        else:
            raise environment.unsupported(
                node,
                "the ON of an ASOF JOIN takes equalities of columns of one type and one "
                "comparison of times, joined by AND",
                hint=f"{_ASOF_HINT}; filter before it in FROM (SELECT … WHERE …), or in WHERE",
                code="bad_asof_condition",
            )
    if len(times) != 1:
        raise environment.error(
            node,
            f"an ASOF JOIN compares one pair of times, but this one compares {len(times)}",
            hint=_ASOF_HINT,
            code="bad_asof_condition",
        )
    ((left_time, right_time, strict),) = times
    return AsOf(left_time, right_time, strict, tuple(keys))


def _sides(predicate: Expression, left: set[int], right: set[int]) -> tuple[str, int, int]:
    match predicate:
        case Call(function=operator, arguments=(Column() as one, Column() as two)):
            if one.dtype != two.dtype:
                return "", 0, 0
            if one.position in left and two.position in right:
                return operator, one.position, two.position
            if one.position in right and two.position in left:
                flipped = "=" if operator == "=" else _BACKWARD.get(operator, "")
                return flipped, two.position, one.position
        case _:
            pass
    return "", 0, 0
