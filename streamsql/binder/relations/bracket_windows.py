"""Windows in brackets behind a relation: of streams, and of views that only select from them."""

from sqlglot import exp

from streamsql.algebra.operators import Plan, Scan, SourceKind, Window, WindowKind
from streamsql.algebra.past_times import HistoryKind
from streamsql.binder.names.environment import Environment, Scope
from streamsql.binder.relations.change_streams import windowed_stream
from streamsql.binder.relations.view_windows import NoWindow, pushed
from streamsql.errors import BindingError
from streamsql.syntax.dialect import StreamWindow


def windowed(
    plan: Plan, name: str, window: StreamWindow, environment: Environment, *, what: str = "a view"
) -> Plan:
    """Return the plan with a window on its streams; `what` the relation is, for the message."""
    kind = WindowKind(window.args["kind"])
    partition = tuple(
        Scope.of(name, plan.schema).resolve(column, environment).position
        for column in _partition_columns(window, environment)
    )
    size, slide, within = (window.args.get(name) for name in ("size", "slide", "range"))

    def on(scan: Scan) -> Window:
        return Window(scan, kind, size, slide, partition, within)

    if isinstance(plan, Scan) and _is_stored(plan):
        raise environment.error(
            window,
            f"{name!r} is a stored table and cannot have a window: its rows do not expire",
            hint="remove the window",
            code="misplaced_window",
        )
    made: Plan | NoWindow | None = None
    if not isinstance(plan, Scan):
        made = windowed_stream(plan, window, partition, environment)
        if made is not None:
            return made
    made = pushed(plan, kind, on)
    if isinstance(made, NoWindow):
        raise _no_window(made, name, window, environment, what)
    if kind == WindowKind.NOW:
        environment.binding.warn(
            f"{name} [NOW] contains only the rows of the current second, so the result is "
            "empty between readings"
        )
    return made


def _is_stored(scan: Scan) -> bool:
    past = scan.history
    return scan.kind == SourceKind.TABLE and (past is None or past.kind == HistoryKind.VERSION)


def _no_window(
    why: NoWindow, name: str, window: StreamWindow, environment: Environment, what: str
) -> BindingError:
    if name in environment.tables:
        is_recursive = environment.tables[name].recursive
        what = "a recursive relation" if is_recursive else "a common table"
    shown = repr(name) if name else "this"
    inside = f"the definition of {name}" if name else "it"
    reason, hint = why.explained(inside)
    return environment.error(
        window,
        f"{shown} is {what}, but only streams have windows: {reason}",
        hint=hint,
        code="misplaced_window",
    )


def _partition_columns(window: StreamWindow, environment: Environment) -> list[exp.Column]:
    columns = window.args.get("partition_by") or []
    for column in columns:
        if not isinstance(column, exp.Column):
            raise environment.error(
                column, "PARTITION BY takes columns of the stream", code="bad_window"
            )
    if columns and window.args["kind"] != "ROWS":
        raise environment.unsupported(
            columns[0],
            "PARTITION BY has an effect only with ROWS",
            hint="leave it out",
            code="bad_window",
        )
    return list(columns)
