"""CREATE FUNCTION and CREATE AGGREGATE to definitions of the catalog.

Whether the code is installed is not a question of the language: every process finds out when it
runs a plan, and the coordinator before it accepts the definition.
"""

from streamsql.algebra.user_functions import is_implementation
from streamsql.binder.expressions.scalar_functions import KNOWN_NAMES
from streamsql.catalog.functions import FunctionDefinition
from streamsql.data.schema import Schema
from streamsql.errors import BindingError
from streamsql.syntax.statements import CreateFunction


def define_function(statement: CreateFunction) -> FunctionDefinition:
    """Return the definition of a function or aggregate.

    Raises:
        BindingError: The name is one of the language, a parameter is there twice, or the
            implementation is not written `package.module:name`.
    """
    name = statement.name
    what = "aggregate" if statement.aggregate else "function"
    if name.text.upper() in KNOWN_NAMES:
        raise BindingError(
            f"{name.text.upper()} is a function of the language",
            span=name.span,
            hint="choose another name",
            code="reserved_name",
        )
    if not is_implementation(statement.implementation):
        raise BindingError(
            f"{statement.implementation!r:.80} names no implementation",
            span=statement.place,
            hint="write 'package.module:name' of a module that is installed at the sites",
            code="bad_implementation",
        )
    seen: set[str] = set()
    for parameter in statement.parameters:
        if parameter.name.text in seen:
            raise BindingError(
                f"parameter {parameter.name.text!r} is defined twice",
                span=parameter.name.span,
                hint="rename one of them",
                code="duplicate_name",
            )
        seen.add(parameter.name.text)
    if not statement.parameters:
        raise BindingError(
            f"{what} {name.text!r} has no parameters",
            span=name.span,
            hint="write a constant instead; to count rows write COUNT(*)",
            code="missing_columns",
        )
    return FunctionDefinition(
        name=name.text,
        aggregate=statement.aggregate,
        parameters=Schema.of(*((p.name.text, p.dtype) for p in statement.parameters)),
        result=statement.result,
        implementation=statement.implementation,
        on_null=statement.on_null,
        text=statement.text,
    )
