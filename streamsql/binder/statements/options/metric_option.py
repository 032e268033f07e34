"""`WITH (metric = 'bytes 1, messages 50')` behind a query: by what its plans are compared."""

from dataclasses import replace

from streamsql.algebra.metrics import METRIC_HINT, Metric, metric_of
from streamsql.errors import BindingError
from streamsql.syntax.statements import Query

NAME = "metric"


def metric_asked(query: Query) -> tuple[Metric | None, Query]:
    """Return the metric that a query asks for, and its other options.

    Raises:
        BindingError: The option says no metric.
    """
    asked: Metric | None = None
    others = tuple(option for option in query.options if option.name != NAME)
    for option in query.options:
        if option.name != NAME:
            continue
        try:
            asked = metric_of(option.value)
        except ValueError as error:
            raise BindingError(
                f"{NAME} {option.value!r:.60}: {error}",
                span=option.value_span,
                hint=METRIC_HINT,
                code="bad_option",
            ) from None
    return asked, replace(query, options=others)
