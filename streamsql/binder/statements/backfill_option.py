"""`WITH (backfill = 'no')` behind a query: its windows begin empty."""

from dataclasses import replace

from streamsql.errors import BindingError
from streamsql.syntax.statements import Query

NAME = "backfill"
_VALUES = {"yes": True, "true": True, "no": False, "false": False}


def backfill_of(query: Query) -> tuple[bool, Query]:
    """Return whether a query's windows begin with what the lake has, and its other options.

    Raises:
        BindingError: The option has another value.
    """
    wanted = True
    for option in query.options:
        if option.name != NAME:
            continue
        found = _VALUES.get(option.value.strip().lower())
        if found is None:
            raise BindingError(
                f"{NAME} is yes or no, not {option.value!r:.40}",
                span=option.value_span,
                hint="backfill = 'no' begins with empty windows; without it they begin full",
                code="bad_option",
            )
        wanted = found
    if not any(option.name == NAME for option in query.options):
        return True, query
    return wanted, replace(query, options=tuple(o for o in query.options if o.name != NAME))
