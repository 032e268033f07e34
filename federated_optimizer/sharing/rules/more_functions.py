"""Groups with more functions: what a node of groups has to have so that others come from it.

A node whose rows and keys would do is widened by the calls, or the statistics of them, that it
lacks; its columns stay in their places, and new ones follow. Of coarser groups a function has to
have a law; of the same groups any function is added. The keys stay: more of them would be other
groups.
"""

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from federated_optimizer.sharing.forms.group_blocks import (
    GroupBlock,
    all_of,
    call_text,
    group_block_of,
)
from federated_optimizer.sharing.rules import coarser_groups
from federated_optimizer.sharing.shown_groups import ShownGroups, decided_by
from streamsql.algebra.aggregate_laws import Law, law_of, statistic_calls
from streamsql.algebra.expressions import Column, columns_of
from streamsql.algebra.operators import AggregateCall, Plan


def widened(wanted: Plan, offered: Plan) -> Plan | None:
    """Return an offered plan with more columns behind its own, from which wanted groups come.

    None if nothing is missing, or if no functions would do.
    """
    ours, theirs = group_block_of(wanted), group_block_of(offered)
    if ours is None or theirs is None:
        return None
    for moved in ours.over(theirs):
        plan = _with(theirs, list(_missing(moved, theirs, offered)), offered)
        if plan is not None and coarser_groups.answer(wanted, plan, plan) is not None:
            return plan
    return None


def widest_groups(plan: Plan) -> Plan | None:
    """Return groups with all their keys and calls, and the statistics of these, behind their own.

    None: the plan is no grouping, or shows all of that.
    """
    groups = group_block_of(plan)
    if groups is None:
        return None
    statistics = (
        _named(law, c) for c in groups.calls if isinstance(law := law_of(c, at_one_site=True), Law)
    )
    return _with(groups, [*groups.calls, *(each for some in statistics for each in some)], plan)


def groups_to_share(plan: Plan) -> Plan | None:
    """Return the groups of a plan as a node from which coarser groups come, too.

    Keys and calls without what stands above them, and the statistics of every call that has a law.
    None: the plan is no grouping.
    """
    groups = group_block_of(plan)
    if groups is None:
        return None
    calls: list[AggregateCall] = []
    for call in groups.calls:
        law = law_of(call, at_one_site=True)
        found = _named(law, call) if isinstance(law, Law) else (call,)
        calls += [each for each in found if not _is_there(each, calls)]
    shared = replace(groups, calls=tuple(calls))
    return replace(shared, above=all_of(shared)).plan()


def _is_there(call: AggregateCall, calls: list[AggregateCall]) -> bool:
    return any(msgspec.structs.replace(each, name=call.name) == call for each in calls)


def _missing(ours: GroupBlock, theirs: GroupBlock, offered: Plan) -> Iterator[AggregateCall]:
    """Yield the calls that wanted groups need of the node, over its inputs."""
    text = ShownGroups(theirs, offered).available.text
    decided = decided_by(ours.keys, ours.below.predicates, text)
    calls = list(_read_calls(ours))
    if all(map(decided, theirs.keys)):
        yield from calls
        return
    for call in calls:
        law = law_of(call, at_one_site=True)
        if isinstance(law, Law):
            yield from _named(law, call)


def _read_calls(groups: GroupBlock) -> Iterator[AggregateCall]:
    """Yield the calls that something above the groups reads: others need not be there."""
    above, width = groups.above, len(groups.keys)
    read = {c for e in (*above.predicates, *above.outputs) for c in columns_of(e)}
    return (call for number, call in enumerate(groups.calls, start=width) if number in read)


def _named(law: Law, call: AggregateCall) -> tuple[AggregateCall, ...]:
    """Return the statistics of a call, named after it."""
    found = statistic_calls(law, call)
    if len(found) == 1:
        return (msgspec.structs.replace(found[0], name=call.name),)
    return tuple(
        msgspec.structs.replace(each, name=f"{call.name}_{number}")
        for number, each in enumerate(found, start=1)
    )


def _with(theirs: GroupBlock, needed: list[AggregateCall], offered: Plan) -> Plan | None:
    """Return groups that show all keys and some calls behind what they show; None: they do."""
    shown = ShownGroups(theirs, offered)
    text = shown.available.text
    calls = list(theirs.calls)
    have = {call_text(call, text): number for number, call in reversed(list(enumerate(calls)))}
    for call in needed:
        if call_text(call, text) not in have:
            have[call_text(call, text)] = len(calls)
            calls.append(call)
    width = len(theirs.keys)
    columns = [
        Column(n, name, key.dtype)
        for n, (name, key) in enumerate(zip(theirs.names, theirs.keys, strict=True))
    ]
    for call in needed:
        number = have[call_text(call, text)]
        columns.append(Column(width + number, call.name, call.dtype))
    wide = replace(theirs, calls=tuple(calls))
    added = [c for c in dict.fromkeys(columns) if shown.shown(wide, c) is None]
    if not added:
        return None
    above = replace(
        theirs.above,
        outputs=(*theirs.above.outputs, *added),
        names=(*theirs.above.names, *(c.name for c in added)),
    )
    return replace(wide, above=above).plan()
