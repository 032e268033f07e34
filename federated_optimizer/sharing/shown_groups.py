"""What a leaf shows of groups, and what of other groups is computed from it."""

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from federated_optimizer.sharing.forms.alignment import Available
from federated_optimizer.sharing.forms.block_names import equal_classes
from federated_optimizer.sharing.forms.expression_text import text_of
from federated_optimizer.sharing.forms.group_blocks import GroupBlock, call_text
from federated_optimizer.sharing.key_nesting import nested
from streamsql.algebra.aggregate_laws import (
    SET_FUNCTIONS,
    Law,
    is_of_set,
    is_small,
    law_of,
    statistic_calls,
    whole_of,
)
from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    conjuncts,
    substituted,
)
from streamsql.algebra.operators import AggregateCall, AggregateFunction, Plan
from streamsql.data.types import DataType

F = AggregateFunction
_INTEGER = DataType.INTEGER
_ROWS = AggregateCall(F.COUNT_ALL, (), "")


@dataclass(slots=True)
class ShownGroups:
    """A leaf of groups.

    Expressions given are over the universal columns of what is grouped; those returned are over the
    leaf.

    Attributes:
        groups: What the leaf gives.
        leaf: The rows.
        available: Expressions of keys that are shown.
    """

    groups: GroupBlock
    leaf: Plan
    available: Available = field(init=False)
    _shown: dict[str, int] = field(init=False)
    _keys: list[tuple[Expression, int]] = field(init=False)

    def __post_init__(self) -> None:
        self.available = Available({}, equal_classes(self.groups.below.predicates))
        self._shown, self._keys = {}, []
        for place, output in enumerate(self.groups.above.outputs):
            self._shown.setdefault(self.text(self.groups, output), place)
            key = self._of_keys(output)
            if key is not None:
                self._keys.append((key, place))
                self.available.places.setdefault(self.available.text(key), place)

    def _of_keys(self, output: Expression) -> Expression | None:
        """Return what an output of keys alone is of a row that is grouped."""
        read = columns_of(output)
        keys = self.groups.keys
        if not read or max(read) >= len(keys):
            return None
        return substituted(output, keys)

    def text(self, groups: GroupBlock, expression: Expression) -> str:
        """Return one text for equal expressions in the spaces of groups over the same inputs."""
        width = len(groups.keys)

        def label(position: int) -> str:
            if position < width:
                return f"key {self.available.text(groups.keys[position])}"
            return call_text(groups.calls[position - width], self.available.text)

        return text_of(expression, label)

    def shown(self, groups: GroupBlock, expression: Expression) -> Column | None:
        """Return the column that shows an expression in the space of groups."""
        place = self._shown.get(self.text(groups, expression))
        return None if place is None else self._column(place)

    def _column(self, place: int) -> Column:
        shown = self.leaf.schema.fields[place]
        return Column(place, shown.name, shown.dtype)

    # --- of keys -------------------------------------------------------------------------------

    def key(self, expression: Expression) -> Expression | None:
        """Return an expression of rows that has one value in each group; None: it has not."""
        if not columns_of(expression):
            return expression
        place = self.available.places.get(self.available.text(expression))
        if place is not None:
            return self._column(place)
        for finer, at in self._keys:
            found = nested(expression, finer, self._column(at), self._same)
            if found is not None:
                return found
        match expression:
            case Call(function=function, arguments=arguments, dtype=dtype):
                parts = [self.key(each) for each in arguments]
                kept = tuple(part for part in parts if part is not None)
                return Call(function, kept, dtype) if len(kept) == len(parts) else None
            case _:
                return None

    def keys(self, expressions: tuple[Expression, ...]) -> tuple[Expression, ...] | None:
        """Return expressions of rows as `key` does; None if one of them is not found."""
        found = [self.key(each) for each in expressions]
        kept = tuple(each for each in found if each is not None)
        return kept if len(kept) == len(found) else None

    def _same(self, one: Expression, other: Expression) -> bool:
        return self.available.text(one) == self.available.text(other)

    # --- of calls ------------------------------------------------------------------------------

    def call(self, call: AggregateCall) -> Column | None:
        """Return the column with the result of a call."""
        place = self._shown.get(call_text(call, self.available.text))
        return None if place is None else self._column(place)

    def value(self, call: AggregateCall) -> Expression | None:
        """Return the result of a call over the rows of each group; None: it is not to be had."""
        shown = self.call(call)
        if shown is not None:
            return shown
        law = law_of(call, at_one_site=True)
        if not isinstance(law, Law):
            return None
        found = self.statistics(law, call)
        return None if found is None else whole_of(law, found)

    def statistics(self, law: Law, call: AggregateCall) -> dict[int, Expression] | None:
        """Return the statistics of each group that a law needs, by number."""
        found: dict[int, Expression] = {}
        for number, statistic in enumerate(statistic_calls(law, call)):
            value = self._statistic(statistic)
            if value is None:
                return None
            found[number] = value
        return found

    def of_keys(self, call: AggregateCall) -> AggregateCall | None:
        """Return a call that counts no copies over the keys of groups, in place of their rows."""
        arguments = self.keys(call.arguments) if is_of_set(call) else None
        if arguments is None:
            return None
        return msgspec.structs.replace(call, arguments=arguments)

    def _statistic(self, call: AggregateCall) -> Expression | None:
        shown = self.call(call)
        if shown is not None:
            return shown
        arguments = self.keys(call.arguments)
        if not arguments or self.groups.is_global:
            return None
        if call.function in (F.ARG_MIN, F.ARG_MAX):  # rows without the second do not count
            value, best = arguments
            there = Call("IS NOT NULL", (best,), DataType.BOOLEAN)
            nothing = Literal(None, value.dtype)
            return Call("CASE", (there, value, nothing), value.dtype)
        if call.function in SET_FUNCTIONS:
            return arguments[0]
        rows = self.call(_ROWS)
        if rows is None or call.function not in (F.COUNT, F.SUM):
            return None
        (value,) = arguments
        match call.function:
            case F.COUNT:
                there = Call("IS NOT NULL", (value,), DataType.BOOLEAN)
                return Call("CASE", (there, rows, Literal(0, _INTEGER)), _INTEGER)
            case F.SUM if is_small(call.arguments[0]):
                return Call("*", (value, rows), _INTEGER)
            case _:
                return None


def decided_by(
    keys: tuple[Expression, ...],
    predicates: tuple[Expression, ...],
    text: Callable[[Expression], str],
) -> Callable[[Expression], bool]:
    """Return whether an expression has one value in all rows of a group by some keys.

    Args:
        keys: Of the groups.
        predicates: TRUE of all rows.
        text: Names expressions; equal ones alike.
    """
    known = {text(key) for key in keys}
    for predicate in (part for each in predicates for part in conjuncts(each)):
        match predicate:
            case Call("=", (Column() as column, Literal())) | Call(
                "=", (Literal(), Column() as column)
            ):
                known.add(text(column))
            case _:
                pass

    def decided(expression: Expression) -> bool:
        if not columns_of(expression) or text(expression) in known:
            return True
        if not isinstance(expression, Call):
            return False
        return all(map(decided, expression.arguments))

    return decided
