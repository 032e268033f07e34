"""`WITH (backfill = 'no', …)` behind a query: how it begins, runs and is planned."""

from dataclasses import dataclass, replace

from streamsql.errors import BindingError
from streamsql.syntax.statements import Query

_VALUES = {"yes": True, "true": True, "no": False, "false": False}
_HINTS = {
    "backfill": "backfill = 'no' begins with empty windows; without it they begin full",
    "adapt": "adapt = 'no' keeps the plan; without it another one is taken when it is much cheaper",
    "heuristics": "heuristics = 'no' considers plans that seldom pay, too",
    "shared": "shared = 'no' runs the query alone; without it equal queries run once for all",
}


RUN_OPTIONS = tuple(_HINTS)
"""Names of the options that this module reads."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Wishes of a query for its run.

    Attributes:
        backfill: Whether its windows begin with what the lake has.
        shared: Whether sites may run it once for all equal queries.
        adapt: Whether its plan may change when what it rests on has changed.
        heuristics: Whether plans are left out that seldom pay; None: as the system says.
    """

    backfill: bool = True
    shared: bool = True
    adapt: bool = True
    heuristics: bool | None = None


def run_options_of(query: Query) -> tuple[RunOptions, Query]:
    """Return what a query says of its run and its plans, and the query with its other options.

    Raises:
        BindingError: One of these options has another value than yes or no.
    """
    values: dict[str, bool] = {}
    for option in query.options:
        hint = _HINTS.get(option.name)
        if hint is None:
            continue
        found = _VALUES.get(option.value.strip().lower())
        if found is None:
            raise BindingError(
                f"{option.name} is yes or no, not {option.value!r:.40}",
                span=option.value_span,
                hint=hint,
                code="bad_option",
            )
        values[option.name] = found
    others = tuple(option for option in query.options if option.name not in _HINTS)
    return RunOptions(**values), replace(query, options=others)
