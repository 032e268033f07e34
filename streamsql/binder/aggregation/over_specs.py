"""The specification in OVER (…): partition, order, frame, and names of a WINDOW clause."""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from streamsql.algebra.operators import Frame
from streamsql.binder.aggregation.order_and_limit import ordered_nodes
from streamsql.binder.names.environment import Environment, identifier_text, whole_number
from streamsql.binder.names.refused_clauses import only
from streamsql.syntax.cursor import did_you_mean

MOST_ROWS = 1_000_000
"""How far LAG, LEAD and a frame may reach."""
_PARTS = ("this", "partition_by", "order", "spec", "alias", "over")


@dataclass(frozen=True, slots=True)
class Spec:
    """One OVER.

    Attributes:
        partition: Expressions of PARTITION BY.
        order: Keys of ORDER BY.
        frame: That of the standard where none is written.
    """

    partition: tuple[exp.Expr, ...]
    order: tuple[exp.Ordered, ...]
    frame: Frame


def spec_of(window: exp.Expr, select: exp.Select, environment: Environment) -> Spec:
    """Return what an OVER says, with the named window it refers to."""
    parts, order, frame = _resolved(
        window, list(select.args.get("windows") or []), select, environment
    )
    keys = tuple(ordered_nodes(order, environment))
    return Spec(parts, keys, _frame(frame, environment, ordered=bool(keys)))


def check_used(select: exp.Select, used: Iterable[exp.Expr], environment: Environment) -> None:
    """Check that every window of a WINDOW clause is used."""
    known = select.args.get("windows") or []
    if not known:
        return
    aliases = [node.args.get("alias") for node in (*used, *known)]
    names = {identifier_text(alias) for alias in aliases if alias is not None}
    for window in known:
        if identifier_text(window.this) not in names:
            raise environment.wrong_arguments(
                window if environment.place(window) else select,
                f"the window {identifier_text(window.this)!r} is not used",
                "remove it, or write OVER and its name after a function",
            )


_Written = tuple[tuple[exp.Expr, ...], exp.Expr | None, exp.Expr | None]


def _resolved(
    window: exp.Expr, known: list[exp.Expr], select: exp.Select, environment: Environment
) -> _Written:
    """Return partition, order and frame; a name means one of the windows before this one."""
    only(window, environment, *_PARTS)
    partition = tuple(window.args.get("partition_by") or ())
    order, frame = window.args.get("order"), window.args.get("spec")
    alias = window.args.get("alias")
    if alias is None:
        return partition, order, frame
    name = identifier_text(alias)
    names = [identifier_text(other.this) for other in known]
    if name not in names:
        raise environment.wrong_arguments(
            alias if environment.place(alias) else window,
            f"there is no window {name!r}",
            did_you_mean(
                name,
                names,
                f"define it after the query: WINDOW {name} AS (PARTITION BY k ORDER BY x)",
            ),
        )
    number = names.index(name)
    base, base_order, base_frame = _resolved(known[number], known[:number], select, environment)
    if partition or (order is not None and base_order is not None) or (base_frame and frame):
        raise environment.wrong_arguments(
            window,
            f"OVER ({name} …) may add only an ORDER BY or a frame that {name} lacks",
            f"write OVER {name}, or the whole window in parentheses",
        )
    return base, order or base_order, frame or base_frame


def _frame(written: exp.Expr | None, environment: Environment, *, ordered: bool) -> Frame:
    if written is None:
        return Frame() if ordered else Frame(None, None)
    kind = str(written.args.get("kind") or "").upper()
    exclude = written.args.get("exclude")
    if kind not in ("ROWS", "RANGE") or exclude is not None:
        raise _refused(written, environment, "EXCLUDE" if exclude is not None else kind)
    start = _bound(written, "start", environment)
    end = _bound(written, "end", environment) if written.args.get("end") is not None else 0
    offsets = [bound for bound in (start, end) if bound not in (None, 0)]
    if kind == "RANGE" and offsets:
        raise _refused(written, environment, "RANGE with an offset")
    frame = Frame(start, end, peers=kind == "RANGE")
    if not frame.is_sound:
        raise environment.wrong_arguments(
            written, "this frame ends before it begins", "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING"
        )
    return frame


def _bound(written: exp.Expr, which: str, environment: Environment) -> int | None:
    """Return a bound as rows from the current one, None for UNBOUNDED."""
    value, side = written.args.get(which), str(written.args.get(f"{which}_side") or "").upper()
    if value == "CURRENT ROW":
        return 0
    preceding = side == "PRECEDING"
    if value == "UNBOUNDED":
        if preceding == (which == "start"):
            return None
        raise environment.wrong_arguments(
            written,
            "a frame begins at UNBOUNDED PRECEDING and ends at UNBOUNDED FOLLOWING",
            "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
        )
    if isinstance(value, exp.Expr) and not isinstance(value, exp.Literal):
        raise _refused(written, environment, "an offset that is not a whole number")
    number = number_of(value, written, environment)
    return -number if preceding else number


def number_of(value: object, node: exp.Expr, environment: Environment) -> int:
    """Return a number of rows."""
    number = whole_number(value, len(str(MOST_ROWS)))
    if number is None or number > MOST_ROWS:
        raise environment.wrong_arguments(
            node,
            f"this takes a whole number of rows, {MOST_ROWS:,} at most",
            "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING, LAG(x, 2)",
        )
    return number


def positive_number(
    given: exp.Expr | None, node: exp.Func, environment: Environment, hint: str
) -> int:
    """Return the argument of NTILE, or the second one of NTH_VALUE."""
    value = whole_number(given, len(str(MOST_ROWS))) or 0
    if 1 <= value <= MOST_ROWS:
        return value
    raise environment.wrong_arguments(
        node, f"{node.sql_name()} takes a constant whole number from 1 to {MOST_ROWS:,}", hint
    )


def _refused(node: exp.Expr, environment: Environment, what: str) -> Exception:
    return environment.unsupported(
        node,
        f"{what} is not supported in a frame",
        hint="write ROWS BETWEEN n PRECEDING AND m FOLLOWING, or RANGE with UNBOUNDED and "
        "CURRENT ROW; for the rows of the last minutes use a window on the stream: s "
        "[RANGE 10 MINUTES]",
        code="unsupported_window",
    )
