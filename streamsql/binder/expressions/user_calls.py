"""Calls of functions and aggregates that users have defined."""

from sqlglot import exp

from streamsql.algebra.expressions import Call, Expression
from streamsql.algebra.user_functions import implementation_name
from streamsql.binder.expressions.coercion import converted
from streamsql.binder.expressions.node_binder import NodeBinder
from streamsql.binder.names.environment import Environment
from streamsql.catalog.functions import FunctionDefinition
from streamsql.data.types import DataType, common_type


def user_function(node: exp.Expr, environment: Environment) -> FunctionDefinition | None:
    """Return the user-defined scalar function that a call means, if it means one."""
    if not isinstance(node, exp.Anonymous):
        return None
    found = environment.binding.catalog.find(str(node.this))
    return found if isinstance(found, FunctionDefinition) and not found.aggregate else None


def bind_user_function(
    binder: NodeBinder, definition: FunctionDefinition, node: exp.Expr
) -> Expression:
    """Bind a call of a user-defined scalar function.

    Raises:
        BindingError: The arguments do not fit its parameters.
    """
    bound = tuple(binder.bind(argument) for argument in node.expressions)
    arguments = checked_arguments(definition, bound, node, binder.environment)
    return Call(implementation_of(definition), arguments, definition.result)


def implementation_of(definition: FunctionDefinition) -> str:
    """Return what a plan names the implementation."""
    return implementation_name(definition.implementation, on_null=definition.on_null)


def checked_arguments(
    definition: FunctionDefinition,
    bound: tuple[Expression, ...],
    node: exp.Expr,
    environment: Environment,
) -> tuple[Expression, ...]:
    """Return arguments as values of the types of the parameters.

    Raises:
        BindingError: Their number or a type is wrong.
    """
    types = definition.parameters.dtypes
    fits = len(bound) == len(types) and all(
        argument.dtype == DataType.NULL or common_type(argument.dtype, dtype) == dtype
        for argument, dtype in zip(bound, types, strict=True)
    )
    if not fits:
        given = ", ".join(argument.dtype for argument in bound)
        raise environment.error(
            node,
            f"{definition.name} does not take ({given})",
            hint=f"it is {definition.usage}",
            code="wrong_arguments",
        )
    return tuple(converted(a, dtype) for a, dtype in zip(bound, types, strict=True))
