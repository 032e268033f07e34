"""What the author of a query should know before it runs."""

from streamsql.algebra.explain import describe
from streamsql.algebra.operators import (
    Aggregate,
    Distinct,
    Filter,
    Fixpoint,
    Join,
    Plan,
    Project,
    Scan,
    SourceKind,
    Values,
    Window,
    WindowKind,
)
from streamsql.binder.environment import Binding

_STATEFUL = {Join: "JOIN", Aggregate: "GROUP BY", Distinct: "DISTINCT", Fixpoint: "RECURSIVE"}


def add_plan_warnings(plan: Plan, binding: Binding) -> None:
    """Add warnings about cross products and about state that grows for ever."""
    _visit(plan, "", binding)


def _visit(plan: Plan, holder: str, binding: Binding) -> None:
    match plan:
        case Join(left=left, right=right, keys=(), residual=None) if not (
            _is_single(left) or _is_single(right)
        ):
            binding.warn(
                f"cross product: nothing connects {_relations(left)} and {_relations(right)}, so "
                "every row meets every row"
            )
        case Window(kind=WindowKind.UNBOUNDED, input=scan):
            _warn_unbounded(scan, holder, binding)
            return
        case Window():
            return
        case Scan():
            _warn_unbounded(plan, holder, binding)
            return
        case _:
            pass
    holder = _STATEFUL.get(type(plan), holder)
    for child in plan.inputs:
        _visit(child, holder, binding)


def _warn_unbounded(scan: Scan, holder: str, binding: Binding) -> None:
    if not holder or scan.kind == SourceKind.TABLE or scan.ttl is not None or scan.key:
        return
    binding.warn(
        f"unbounded state: {holder} keeps every row of {scan.source} for ever; write "
        f"{scan.source} [RANGE 10 MINUTES], or create the source WITH (ttl = '90 s')"
    )


def _is_single(plan: Plan) -> bool:
    """Whether a relation has one row at most, so that a product with it stays small."""
    match plan:
        case Values(rows=rows):
            return len(rows) <= 1
        case Aggregate(group=()):
            return True
        case Project(input=child) | Filter(input=child):
            return _is_single(child)
        case _:
            return False


def _relations(plan: Plan) -> str:
    match plan:
        case Scan(source=source) | Window(input=Scan(source=source)):
            return source
        case Fixpoint(name=name):
            return name
        case _ if len(plan.inputs) == 1:
            return _relations(plan.inputs[0])
        case Join(left=left, right=right):
            return f"{_relations(left)} with {_relations(right)}"
        case _:
            return describe(plan)
