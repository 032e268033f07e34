"""Plans rebuilt, walked, and asked what they read."""

from collections.abc import Callable, Iterator

import msgspec

from streamsql.algebra.leaves import (
    RecursiveReference,
    RemoteSource,
    Scan,
    Values,
    Window,
    WindowBounds,
    require,
)
from streamsql.algebra.operators.fixpoint import Fixpoint
from streamsql.algebra.operators.plan import Plan
from streamsql.algebra.operators.relational import OnClose, SetOperation, UnionAll
from streamsql.algebra.operators.relational_joins import AsOfJoin, Join
from streamsql.algebra.operators.to_stream import ToStream
from streamsql.algebra.operators.windows import Younger


def with_inputs(plan: Plan, inputs: tuple[Plan, ...]) -> Plan:
    """Return the same operator over other inputs.

    Raises:
        InternalError: The number or the kind of inputs is wrong.
    """
    require(len(inputs) == len(plan.inputs), "wrong number of inputs")
    match plan:
        case Scan() | RemoteSource() | RecursiveReference() | Values():
            return plan
        case Window() | WindowBounds():
            (only,) = inputs
            require(isinstance(only, Scan), "a window stands on a scan")
            return msgspec.structs.replace(plan, input=only)
        case Join() | AsOfJoin() | SetOperation() | OnClose() | Younger():
            return msgspec.structs.replace(plan, left=inputs[0], right=inputs[1])
        case UnionAll():
            return UnionAll(inputs)
        case ToStream(feeds=feeds):
            count = len(feeds)
            return msgspec.structs.replace(plan, feeds=inputs[:count], progress=inputs[count:])
        case Fixpoint(base=base):
            return msgspec.structs.replace(plan, base=inputs[: len(base)], step=inputs[len(base) :])
        case _:
            return msgspec.structs.replace(plan, input=inputs[0])


def transform_up(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """Rebuild a plan bottom-up through a function."""
    inputs = tuple(transform_up(child, change) for child in plan.inputs)
    return change(plan if inputs == plan.inputs else with_inputs(plan, inputs))


def walk_plan(plan: Plan) -> Iterator[Plan]:
    """Yield every node, parents first."""
    # A generator for each level takes twice as long (plans of the building, 15 operators).
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.inputs[::-1])


def walk_relation(plan: Plan) -> Iterator[Plan]:
    """Yield every node that is evaluated, parents first: of a stream its query, not its inputs."""
    yield plan
    for child in (plan.query,) if isinstance(plan, ToStream) else plan.inputs:
        yield from walk_relation(child)


def refers_to(plan: Plan, name: str) -> bool:
    """Whether a plan reads the recursive relation of that name."""
    return any(isinstance(n, RecursiveReference) and n.name == name for n in walk_plan(plan))


def is_open(plan: Plan) -> bool:
    """Whether a plan reads a recursive relation that it does not define itself.

    A plan with a whole recursion inside is closed.
    """
    return bool(_open_names(plan))


def _open_names(plan: Plan) -> frozenset[str]:
    if isinstance(plan, RecursiveReference):
        return frozenset((plan.name,))
    names = frozenset[str]().union(*map(_open_names, plan.inputs))
    return names - {plan.name} if isinstance(plan, Fixpoint) else names
