"""`WITH (plan = n)` behind a query: the n-th plan that EXPLAIN ALTERNATIVES lists."""

from dataclasses import replace

from streamsql.errors import BindingError
from streamsql.syntax.statements import Query

NAME = "plan"


def plan_of(query: Query) -> tuple[int, Query]:
    """Return the number of the plan that a query asks for, or 0, and its other options.

    Raises:
        BindingError: The option is no number from 1.
    """
    asked = 0
    for option in query.options:
        if option.name != NAME:
            continue
        text = option.value.strip()
        asked = int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0
        if not asked and text.lower() != "auto":
            raise BindingError(
                f"a {NAME} is a whole number from 1, not {option.value!r:.40}",
                span=option.value_span,
                hint="EXPLAIN ALTERNATIVES lists the plans of a query with their numbers",
                code="bad_option",
            )
    if not any(option.name == NAME for option in query.options):
        return 0, query
    return asked, replace(query, options=tuple(o for o in query.options if o.name != NAME))
