"""Groups computed from finer groups: each row of the node stands for the rows of its group.

| sound if | as |
|---|---|
| both group the same inputs, and wanted predicates imply the offered ones | no row is missing |
| predicates that remain have one value in each offered group | groups stay or go whole |
| each wanted key is computed from offered keys (`key_nesting`) | a group has one wanted group |
| each call has a law (`aggregate_laws`) whose statistics are there | parts make the whole |
| or it counts no copies, and reads keys alone | the groups have all values |

Where wanted keys, and constants that wanted predicates demand, decide all offered keys, a wanted
group is one offered group: then its rows are filtered and shown, and every function is that of the
node, holistic ones and sums of DOUBLE, too. HAVING stands above. Without keys there is one row also
of nothing: its counts are 0.

DISTINCT is groups by all columns without calls, so distinct rows come from distinct rows of more
columns, and from groups by these columns and others; never the reverse, since distinct rows say
nothing of copies. DISTINCT over an offer that keeps copies is DISTINCT over what answers its input.

A row of a node that goes takes its part of
every statistic with it, so deletions and expiry need no more than the laws.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import msgspec
from msgspec import UNSET

from federated_optimizer.rules.merge_filters import filtered
from federated_optimizer.sharing.forms.blocks import plan_of
from federated_optimizer.sharing.forms.group_blocks import GroupBlock, group_block_of
from federated_optimizer.sharing.forms.known_times import known_times
from federated_optimizer.sharing.forms.residuals import residual
from federated_optimizer.sharing.refusals import NotSharedError, proven
from federated_optimizer.sharing.rule_bases import Basis
from federated_optimizer.sharing.shown_groups import ShownGroups, decided_by
from streamsql.algebra.aggregate_laws import Law, NoLaw, law_of, merging_call, whole_of
from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    expression_text,
    map_columns,
)
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Distinct,
    Plan,
    Project,
    identity_columns,
)
from streamsql.data.types import DataType

F = AggregateFunction


def answered(wanted: Plan, offered: Plan, leaf: Plan) -> Plan:
    """Return wanted groups over the rows of offered ones.

    Raises:
        NotSharedError: It cannot be proven right.
    """
    ours, theirs = group_block_of(wanted), group_block_of(offered)
    if ours is None or theirs is None:
        raise NotSharedError("they are not both groups")
    return over_groups(ours, theirs, leaf)


answer = proven(answered)


def offered(plan: Plan) -> Basis | None:
    """Return what a node groups; None: nothing."""
    groups = group_block_of(plan)
    return None if groups is None else Basis.of_block(groups.is_global, groups.below)


def wanted(plan: Plan) -> tuple[Basis, ...]:
    """Return what a plan groups, for the kinds of nodes from which its groups may come."""
    groups = group_block_of(plan)
    if groups is None:
        return ()
    # A node without keys has one row even of nothing.
    kinds = (False, True) if groups.is_global else (False,)
    return tuple(Basis.of_block(kind, groups.below) for kind in kinds)


def over_groups(ours: GroupBlock, theirs: GroupBlock, leaf: Plan) -> Plan:
    """Return wanted groups over the rows of offered ones, in the best assignment of inputs.

    Raises:
        NotSharedError: There is none that can be proven right.
    """
    shown: ShownGroups | None = None
    found: Plan | None = None
    reason = "they group other rows"
    for moved in ours.over(theirs):
        shown = shown or ShownGroups(theirs, leaf)
        try:
            answering = _Answering(moved, shown)
            if answering.is_one_for_one:
                with suppress(NotSharedError):
                    return answering.filtered_groups()
            found = found or answering.regrouped()
        except NotSharedError as error:
            reason = str(error)
    if found is None:
        raise NotSharedError(reason)
    return found


class _Answering:
    """Wanted groups over shown ones, with the same inputs in the same order.

    Attributes:
        is_one_for_one: Whether each wanted group is one shown group.
    """

    def __init__(self, wanted: GroupBlock, shown: ShownGroups) -> None:
        self._wanted, self._shown = wanted, shown
        self._rest = self._remaining()
        self._keys = self._computed_keys()
        decided = decided_by(wanted.keys, wanted.below.predicates, shown.available.text)
        self._is_decided = all(map(decided, shown.groups.keys))
        self.is_one_for_one = self._is_decided and wanted.is_global == shown.groups.is_global

    def _remaining(self) -> tuple[Expression, ...]:
        """Return predicates over the leaf that let through the groups of the wanted rows."""
        offered = self._shown.groups
        over: dict[Expression, Expression | None] = {}

        def is_shown(predicate: Expression) -> bool:
            over[predicate] = self._shown.key(predicate)
            return over[predicate] is not None

        rest = residual(
            *(self._wanted.below.predicates, offered.below.predicates),
            known_times(self._wanted.below),
            is_shown=is_shown,
        )
        if rest is None and not over:
            raise NotSharedError("the node has not all of the rows that are grouped")
        found: list[Expression] = []
        for predicate in [*over][-1:] if rest is None else rest:
            shown = self._shown.key(predicate)
            if shown is None:
                words = expression_text(predicate)
                raise NotSharedError(f"{words} reads more than the groups of the node have")
            found.append(shown)
        if found and offered.is_global:
            raise NotSharedError("the node has one row of all of its rows")
        return tuple(found)

    def _computed_keys(self) -> tuple[Expression, ...]:
        wanted, offered = self._wanted, self._shown.groups
        if offered.is_global and not wanted.is_global:
            raise NotSharedError("the node has one row even of nothing")
        found = []
        for key in wanted.keys:
            over = self._shown.key(key)
            if over is None:
                raise NotSharedError(f"the groups of the node do not have {expression_text(key)}")
            found.append(over)
        return tuple(found)

    # --- one group of the node each ------------------------------------------------------------

    def filtered_groups(self) -> Plan:
        """Return the groups that are there.

        Raises:
            NotSharedError: The node leaves some out, or has not all functions.
        """
        rest = self._having()
        rows = filtered(self._shown.leaf, [*self._rest, *map(self._above, rest)])
        above = self._wanted.above
        outputs = tuple(map(self._above, above.outputs))
        if outputs == identity_columns(rows.schema) and above.names == rows.schema.names:
            return rows
        return Project(rows, outputs, above.names)

    def _having(self) -> tuple[Expression, ...]:
        """Return what is still to be checked of the groups that the node shows."""
        offered = self._shown.groups
        numbers: dict[str, int] = {}

        def common(groups: GroupBlock) -> tuple[Expression, ...]:
            def numbered(column: Column) -> Column:
                text = self._shown.text(groups, column)
                number = numbers.setdefault(text, len(numbers))
                origin.setdefault(number, (groups, column))
                return Column(number, column.name, column.dtype)

            return tuple(map_columns(p, numbered) for p in groups.above.predicates)

        origin: dict[int, tuple[GroupBlock, Column]] = {}
        ours = common(self._wanted)
        rest = residual(ours, common(offered))
        if rest is None:
            raise NotSharedError("HAVING of the node leaves out groups")
        return tuple(map_columns(p, lambda c: origin[c.position][1]) for p in rest)

    def _above(self, expression: Expression) -> Expression:
        """Return an expression in the space of the wanted groups over the leaf."""
        if not columns_of(expression):
            return expression
        shown = self._shown.shown(self._wanted, expression)
        if shown is not None:
            return shown
        match expression:
            case Column(position=position):
                return self._group_column(position)
            case Call(function=function, arguments=arguments, dtype=dtype):
                return Call(function, tuple(map(self._above, arguments)), dtype)
            case _:
                return expression

    def _group_column(self, position: int) -> Expression:
        width = len(self._keys)
        if position < width:
            return self._keys[position]
        call = self._wanted.calls[position - width]
        value = self._shown.value(call)
        if value is None:
            raise NotSharedError(f"the node has no {_words(call)}")
        return value

    # --- many groups of the node each ----------------------------------------------------------

    def regrouped(self) -> Plan:
        """Return groups of the groups that are there.

        Raises:
            NotSharedError: The node leaves some out, or a function has no parts in it.
        """
        wanted, shown = self._wanted, self._shown
        if shown.groups.above.predicates:
            raise NotSharedError("HAVING of the node leaves out groups")
        rows = filtered(shown.leaf, list(self._rest))
        made = _Regrouped(self._keys, wanted)
        for call in wanted.calls:
            self._add(call, made)
        if wanted.is_distinct:
            grouped: Plan = Distinct(_projected(rows, self._keys, wanted.names))
        else:
            grouped = made.grouped(rows)
        above = replace(
            wanted.above,
            inputs=(grouped,),
            predicates=tuple(made.put(p) for p in wanted.above.predicates),
            outputs=tuple(made.put(e) for e in wanted.above.outputs),
        )
        return plan_of(above)

    def _add(self, call: AggregateCall, made: "_Regrouped") -> None:
        value = self._shown.value(call) if self._is_decided else None
        if value is not None:  # of at most one group of the node
            is_unknown = call.function == F.USER and call.merged_by is UNSET
            if is_unknown and self._wanted.is_global:
                raise NotSharedError(f"{_words(call)} of no rows need not be NULL")
            made.only_value(call, value)
            return
        law = law_of(call, at_one_site=True)
        found = self._shown.statistics(law, call) if isinstance(law, Law) else None
        if isinstance(law, Law) and found is not None:
            made.merged(law, found)
            return
        of_keys = self._shown.of_keys(call)
        if of_keys is not None:
            made.called(of_keys)
            return
        if isinstance(law, NoLaw):
            raise NotSharedError(law.reason)
        raise NotSharedError(f"the node has not the parts of {_words(call)}")


class _Regrouped:
    """Calls over the rows of a leaf, and the wanted results of them."""

    def __init__(self, keys: tuple[Expression, ...], wanted: GroupBlock) -> None:
        self._keys, self._names = keys, wanted.names
        self._calls: list[AggregateCall] = []
        self._results: list[Expression] = []

    def only_value(self, call: AggregateCall, value: Expression) -> None:
        """Add the result of a call of which there is one value or, of no rows, none."""
        found: Expression = self._called(AggregateCall(F.MIN, (value,), call.name))
        if call.function in (F.COUNT_ALL, F.COUNT):
            zero = Literal(0, DataType.INTEGER)
            found = Call("COALESCE", (found, zero), DataType.INTEGER)
        self._results.append(found)

    def merged(self, law: Law, statistics: dict[int, Expression]) -> None:
        """Add the result of a law over parts."""
        columns = tuple(statistics[n] for n in range(len(law.statistics)))
        found: dict[int, Expression] = {}
        for number in law.read:
            name = f"whole{len(self._calls) + 1}"
            found[number] = self._called(merging_call(law, number, columns, name))
        self._results.append(whole_of(law, found))

    def called(self, call: AggregateCall) -> None:
        """Add the result of a call over the leaf."""
        self._results.append(self._called(call))

    def _called(self, call: AggregateCall) -> Column:
        for number, other in enumerate(self._calls):
            if msgspec.structs.replace(other, name=call.name) == call:
                return Column(len(self._keys) + number, other.name, other.dtype)
        self._calls.append(call)
        return Column(len(self._keys) + len(self._calls) - 1, call.name, call.dtype)

    def grouped(self, rows: Plan) -> Plan:
        """Return the groups of rows of the leaf, with all calls."""
        group = tuple(k.position for k in self._keys if isinstance(k, Column))
        if len(group) == len(self._keys):
            return Aggregate(rows, group, tuple(self._calls))
        width = len(rows.schema)
        columns = (*identity_columns(rows.schema), *self._keys)
        below = Project(rows, columns, (*rows.schema.names, *self._names))
        return Aggregate(below, tuple(range(width, len(columns))), tuple(self._calls))

    def put(self, expression: Expression) -> Expression:
        """Return an expression in the space of the wanted groups over those that were made."""
        width = len(self._keys)

        def result(column: Column) -> Expression:
            return column if column.position < width else self._results[column.position - width]

        return map_columns(expression, result)


def _projected(rows: Plan, keys: Sequence[Expression], names: tuple[str, ...]) -> Plan:
    if tuple(keys) == identity_columns(rows.schema) and names == rows.schema.names:
        return rows
    return Project(rows, tuple(keys), names)


def _words(call: AggregateCall) -> str:
    distinct = "DISTINCT " if call.distinct else ""
    if call.function == F.COUNT_ALL:
        return str(call.function)
    name = call.implementation or call.function
    return f"{name}({distinct}{', '.join(map(expression_text, call.arguments))})"
