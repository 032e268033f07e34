"""Refusal of recursions that would not end."""

from collections.abc import Mapping

from streamsql.algebra.choices import Copies
from streamsql.algebra.operators import Fixpoint, Plan, walk_plan
from streamsql.data.schema import Field
from streamsql.data.types import DataType
from streamsql.errors import BindingError, Span
from streamsql.recursion.growth import Growth, endless_step, growths
from streamsql.recursion.pushing import push_selections


class NonTerminatingError(BindingError):
    """A recursion computes ever new values and nothing stops it."""

    code = "non_terminating"


def ended(plan: Plan, places: Mapping[str, Span | None]) -> Plan:
    """Return a plan with MIN and MAX pushed into its recursions, all of which end.

    `places` says where each recursion was written, by fixpoint name.
    """
    pushed = push_selections(plan)
    check_termination(pushed.plan, places, pushed.reasons)
    return pushed.plan


def check_termination(
    plan: Plan, places: Mapping[str, Span | None], reasons: Mapping[str, str]
) -> None:
    """Check every recursion of a plan.

    A fixpoint with an aggregate selection keeps only its best rows, so its columns may grow.

    Args:
        plan: Any plan, after aggregate selections were pushed.
        places: Where each recursion was written, by fixpoint name.
        reasons: Why a MIN or MAX above a recursion could not be pushed into it.

    Raises:
        NonTerminatingError: A column grows without bound; names it and says what to do.
    """
    for node in walk_plan(plan):
        if isinstance(node, Fixpoint) and node.selection is None:
            found = growths(node)
            if found:
                raise _refusal(node, found[0], places.get(node.name), reasons.get(node.name))
            if node.copies != Copies.ONE and (step := endless_step(node)) is not None:
                raise _endless(node, step, places.get(node.name))


def _endless(fixpoint: Fixpoint, step: int, place: Span | None) -> NonTerminatingError:
    where = f"step {step}" if len(fixpoint.step) > 1 else "its step"
    return NonTerminatingError(
        f"the recursion {fixpoint.name!r} with UNION ALL does not end: on a cycle {where} "
        "would add the same rows for ever",
        span=place,
        hint="count and bound the steps (hops + 1 … WHERE hops < 12), write WITH RECURSIVE "
        "(LIMIT 12 RETURN) or (LIMIT 12 ERROR), or UNION, which keeps each row once",
    )


def _refusal(
    fixpoint: Fixpoint, growth: Growth, place: Span | None, reason: str | None
) -> NonTerminatingError:
    field = fixpoint.columns.fields[growth.column]
    where = f"step {growth.branch}" if len(fixpoint.step) > 1 else "its step"
    if growth.relation:
        where = f"a step of {growth.relation!r}"
    message = (
        f"the recursion {fixpoint.name!r} does not end: {where} computes {field.name} as "
        f"{growth.expression}, and {_why(growth, field)}"
    )
    if reason:
        message += f"; the aggregate above it does not bound it, because {reason}"
    return NonTerminatingError(message, span=place, hint=_hint(field.name, field.dtype))


def _why(growth: Growth, field: Field) -> str:
    if not growth.tested:
        return "nothing bounds it"
    if field.dtype == DataType.TEXT:
        return f"the test of {field.name} does not check the appended part"
    return f"the test of {field.name} does not bound it: the step must have a constant size"


def _hint(name: str, dtype: DataType) -> str:
    if dtype == DataType.TEXT:
        return (
            f"test in the step that {name} does not contain the appended part, for example "
            f"POSITION(x IN {name}) = 0; or count and bound the steps: hops + 1 … WHERE "
            "hops < 12"
        )
    return (
        f"bound a counter in the step (hops + 1 … WHERE hops < 12), or read only MIN({name}) "
        "GROUP BY the columns that the step joins on"
    )
