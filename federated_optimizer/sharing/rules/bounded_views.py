"""Recursions from the same recursion over more base rows: a bound is a filter of a running view.

A recursion with conditions in its base branches has the rows of the one without them that satisfy
the conditions, if

- the conditions are the same for all base branches, and read stable columns alone
  (`rules.stable_columns`): each step copies them from the one row of the relation that it reads,
  so a row satisfies them if, and only if, the base row at the start of its derivation does;
- the steps are the same, for rows that satisfy the conditions: a step that repeats them of what it
  joins, as "of one floor" does where rows and links have the floor, is the same step;
- kept rows, copies, rounds and the bound of rows are the same. Of best rows per group only columns
  of the group are stable.

So reachable pairs from one node come of all reachable pairs that grow at their other end, and the
region of one floor of the regions of all floors if every row of a region carries its floor. Never
the region of some sensors of the region of all: a sensor that is left out may be what connects two
others, and no column of a row says what it was derived over. A condition on another column stands
above the recursion anyway, where `select_project_join` finds it.

What stands above the recursion is answered by the rules for blocks and groups.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import permutations

import msgspec

from federated_optimizer.rules.merge_filters import filtered
from federated_optimizer.rules.stable_columns import stable_columns
from federated_optimizer.sharing.forms.alignment import Available, aligned, rewritten
from federated_optimizer.sharing.forms.blocks import Block, block_of
from federated_optimizer.sharing.forms.canonical_plan import canonical_plan
from federated_optimizer.sharing.forms.known_times import known_times
from federated_optimizer.sharing.forms.residuals import predicate_set, residual
from federated_optimizer.sharing.refusals import NotSharedError, proven
from federated_optimizer.sharing.rule_bases import Basis
from federated_optimizer.sharing.rules import coarser_groups, select_project_join
from streamsql.algebra.expressions import Expression, columns_of, shifted
from streamsql.algebra.operators import (
    Fixpoint,
    Plan,
    RecursiveReference,
    RemoteSource,
    transform_up,
    with_inputs,
)

MAX_BRANCHES = 4
"""Base branches whose orders are tried; of more the given order is taken."""


def answered(wanted: Plan, offered: Plan, leaf: Plan) -> Plan:
    """Return a recursion over the rows of one with more base rows.

    Raises:
        NotSharedError: It cannot be proven right.
    """
    bounded, whole = _recursions(wanted), _recursions(offered)
    if len(bounded) != 1 or len(whole) != 1:
        raise NotSharedError("they have not both one recursion")
    ((here,), (there,)) = bounded, whole
    over = _replaced(wanted, here, filtered(there, list(bound_of(here, there))))
    for rule in (select_project_join.answer, coarser_groups.answer):
        found = rule(over, offered, leaf)
        if found is not None:
            return found
    raise NotSharedError("the view does not show what is wanted of its rows")


answer = proven(answered)


def offered(plan: Plan) -> Basis | None:
    """Return the first base branch of a node; None: it has not one recursion."""
    found = _recursions(plan)
    if len(found) != 1:
        return None
    return Basis.of_block(_said(found[0]), block_of(found[0].base[0]))


def wanted(plan: Plan) -> tuple[Basis, ...]:
    """Return the base branches of a plan: each may be that which a node has first."""
    found = _recursions(plan)
    if len(found) != 1:
        return ()
    return tuple(Basis.of_block(_said(found[0]), block_of(each)) for each in found[0].base)


def _recursions(plan: Plan) -> tuple[Fixpoint, ...]:
    """Return the outermost recursions of a plan."""
    if isinstance(plan, Fixpoint):
        return (plan,)
    found = (each for child in plan.inputs for each in _recursions(child))
    return tuple(dict.fromkeys(found))


def _replaced(plan: Plan, old: Plan, new: Plan) -> Plan:
    if plan == old:
        return new
    inputs = tuple(_replaced(child, old, new) for child in plan.inputs)
    return plan if inputs == plan.inputs else with_inputs(plan, inputs)


def bound_of(bounded: Fixpoint, whole: Fixpoint) -> tuple[Expression, ...]:
    """Return the conditions that rows of a recursion satisfy if they are of a bounded one.

    Raises:
        NotSharedError: It is not known that there are such conditions.
    """
    if _said(bounded) != _said(whole):
        raise NotSharedError("they keep other rows, copies or rounds")
    renamed = _renamed(bounded, whole)
    stable = stable_columns(whole)
    reason = "their base branches are over other rows"
    for order in _orders(renamed.base):
        try:
            bound = _bound_of_bases(order, whole, stable)
        except NotSharedError as error:
            reason = str(error)
            continue
        for ours, theirs in zip(renamed.step, whole.step, strict=True):
            if not _is_same_step(ours, theirs, bound, whole):
                raise NotSharedError("their steps differ")
        return bound
    raise NotSharedError(reason)


def _said(node: Fixpoint) -> Hashable:
    types, parts = node.columns.dtypes, (len(node.base), len(node.step))
    return types, parts, node.limit, node.selection, node.rounds, node.copies


def _renamed(node: Fixpoint, other: Fixpoint) -> Fixpoint:
    """Return a recursion that reads itself under the name of another one."""
    reading = RecursiveReference(other.name, other.columns)

    def renamed(plan: Plan) -> Plan:
        is_own = isinstance(plan, RecursiveReference) and plan.name == node.name
        return reading if is_own else plan

    step = tuple(transform_up(branch, renamed) for branch in node.step)
    return msgspec.structs.replace(node, step=step)


def _orders(branches: tuple[Plan, ...]) -> Iterator[tuple[Plan, ...]]:
    if len(branches) > MAX_BRANCHES:
        yield branches
    else:
        yield from permutations(branches)


def _bound_of_bases(
    bounded: Sequence[Plan], whole: Fixpoint, stable: frozenset[int]
) -> tuple[Expression, ...]:
    """Return what base branches demand beyond those of a recursion, of its columns."""
    found: tuple[Expression, ...] | None = None
    rows = RemoteSource(whole.name, whole.columns)
    for ours, theirs in zip(bounded, whole.base, strict=True):
        bound = _bound_of_base(block_of(ours), block_of(theirs), rows, stable)
        if found is not None and predicate_set(found) != predicate_set(bound):
            raise NotSharedError("their base branches have several bounds")
        found = bound
    return found or ()


def _bound_of_base(
    ours: Block, theirs: Block, rows: Plan, stable: frozenset[int]
) -> tuple[Expression, ...]:
    available = Available.of(theirs)
    shown = {t: p for t, p in available.places.items() if p in stable}
    kept = Available(shown, available.classes)
    reason = "their base branches are over other rows"
    for moved in aligned(ours, theirs):
        rest = residual(moved.predicates, theirs.predicates, known_times(moved))
        if rest is None or not _same_outputs(moved, theirs):
            continue
        found = [rewritten(each, kept, rows) for each in rest]
        bound = tuple(each for each in found if each is not None and columns_of(each))
        if len(bound) == len(rest):
            return bound
        reason = "a step does not keep the columns of the bound"
    raise NotSharedError(reason)


def _same_outputs(ours: Block, theirs: Block) -> bool:
    available = Available.of(theirs)
    return [*map(available.text, ours.outputs)] == [*map(available.text, theirs.outputs)]


def _is_same_step(ours: Plan, theirs: Plan, bound: tuple[Expression, ...], whole: Fixpoint) -> bool:
    """Return whether steps derive the same rows from rows that satisfy a bound."""
    one, other = canonical_plan(ours), canonical_plan(theirs)
    if one == other:
        return True
    wanted, offered = block_of(ours), block_of(theirs)
    at, own = _reading(offered, whole), _reading(wanted, whole)
    if at is None or own is None:
        return False
    known = tuple(shifted(each, offered.offsets[at]) for each in bound)
    ours_known = tuple(shifted(each, wanted.offsets[own]) for each in bound)
    wanted = replace(wanted, predicates=(*wanted.predicates, *ours_known))
    for moved in aligned(wanted, offered):
        here = predicate_set((*moved.predicates, *known))
        there = predicate_set((*offered.predicates, *known))
        both = here.implies(there) and there.implies(here)
        if both and _same_outputs(moved, offered):
            return True
    return False


def _reading(step: Block, whole: Fixpoint) -> int | None:
    """Return the input of a step that is the relation itself; None: there is not just one."""
    found = [
        number
        for number, child in enumerate(step.inputs)
        if isinstance(child, RecursiveReference) and child.name == whole.name
    ]
    return found[0] if len(found) == 1 else None
