"""Scalar expressions: from parsed trees to typed, positional expressions.

One table says which part binds which node; what is not in the table is refused with a reason.
"""

from collections.abc import Callable

from sqlglot import exp

from streamsql.algebra.expressions import Expression
from streamsql.binder.expressions import (
    alternatives,
    arithmetic,
    columns_and_constants,
    conditions,
    function_calls,
    function_forms,
    patterns,
)
from streamsql.binder.expressions.coercion import converted
from streamsql.binder.expressions.node_binder import NodeBinder
from streamsql.binder.expressions.scalar_functions import PARSED
from streamsql.binder.names.environment import Environment
from streamsql.binder.names.scope import Scope
from streamsql.data.types import DataType

AggregateHook = Callable[[exp.Expr], Expression | None]


class ExpressionBinder:
    """Binds expressions over one scope.

    Args:
        environment: Names and places.
        scope: Visible columns.
        aggregates: Called with every node first; returns the column that stands for an aggregate,
            or None for any other node. Without it aggregates are refused.
    """

    def __init__(
        self, environment: Environment, scope: Scope, aggregates: AggregateHook | None = None
    ) -> None:
        self.environment = environment
        self.scope = scope
        self._aggregates = aggregates

    def bind(self, node: exp.Expr) -> Expression:
        """Return the typed expression.

        Raises:
            BindingError: A name is unknown or ambiguous, or types do not fit.
            UnsupportedError: A construct is refused, with what to write instead.
        """
        outer = self.environment.outer
        outside = None if outer is None else outer.aggregate(node, self.environment)
        if outside is not None:
            return self.scope.read(outside)
        if self._aggregates is not None:
            found = self._aggregates(node)
            if found is not None:
                return found
        part = _PARTS.get(type(node))
        if isinstance(node, exp.Anonymous):
            part = _NAMED.get(str(node.this).upper(), part)
        if part is None:
            raise function_calls.refusal(self, node)
        return part(self, node)

    def predicate(self, node: exp.Expr, where: str) -> Expression:
        """Return a condition.

        Raises:
            BindingError: It is not BOOLEAN.
        """
        bound = self.bind(node)
        if bound.dtype not in (DataType.BOOLEAN, DataType.NULL):
            raise self.environment.error(
                node,
                f"{where} needs a condition, but this has type {bound.dtype}",
                hint="compare it with something, for example … > 0",
                code="not_a_condition",
            )
        return converted(bound, DataType.BOOLEAN)


_PARTS: dict[type[exp.Expr], Callable[[NodeBinder, exp.Expr], Expression]] = {
    exp.Column: columns_and_constants.bind_column,
    exp.Identifier: columns_and_constants.bind_identifier,
    exp.Dot: columns_and_constants.bind_dot,
    exp.Literal: columns_and_constants.bind_literal,
    exp.Null: columns_and_constants.bind_null,
    exp.Boolean: columns_and_constants.bind_boolean,
    exp.Paren: columns_and_constants.bind_paren,
    exp.Cast: columns_and_constants.bind_cast,
    exp.Interval: columns_and_constants.bind_interval,
    exp.And: conditions.bind_logic,
    exp.Or: conditions.bind_logic,
    exp.Not: conditions.bind_not,
    **dict.fromkeys(conditions.COMPARISONS, conditions.bind_comparison),
    exp.Is: conditions.bind_is,
    exp.NullSafeEQ: conditions.bind_null_safe,
    exp.NullSafeNEQ: conditions.bind_null_safe,
    exp.Between: conditions.bind_between,
    exp.In: conditions.bind_in,
    exp.Like: conditions.bind_like,
    exp.ILike: conditions.bind_like,
    exp.RegexpLike: patterns.bind_regexp,
    exp.RegexpILike: patterns.bind_regexp_folded,
    exp.SimilarTo: patterns.bind_similar,
    exp.Case: alternatives.bind_case,
    exp.If: alternatives.bind_if,
    exp.Coalesce: alternatives.bind_choice,
    exp.Least: alternatives.bind_choice,
    exp.Greatest: alternatives.bind_choice,
    exp.Nullif: alternatives.bind_nullif,
    **dict.fromkeys(arithmetic.ARITHMETIC, arithmetic.bind_arithmetic),
    exp.Neg: arithmetic.bind_negation,
    exp.DPipe: function_calls.bind_concatenation,
    **dict.fromkeys(PARSED, function_calls.bind_parsed),
    exp.Anonymous: function_calls.bind_anonymous,
    exp.Escape: conditions.bind_escape,
    **function_forms.FORMS,
}

_NAMED = {**function_forms.NAMED, "REGEXP_MATCHES": patterns.bind_regexp_call}
"""By the name of a function that sqlglot does not know."""
