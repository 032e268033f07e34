"""Which site a changed row goes to."""

from collections.abc import Sequence

from stream_engine.state.columns import picker
from streamsql.data.delta import Delta
from streamsql.wire.partitioning import site_of


def route(
    delta: Delta, destinations: Sequence[str], partition: tuple[int, ...]
) -> dict[str, Delta]:
    """Split a change over the sites that take it; sites that get nothing are left out.

    With partition columns each row goes to the one site that owns their values; without, every row
    goes to all (the parts are then the same object, which nobody may change).

    Examples:
        >>> route({("a",): 1}, ["base"], (0,))
        {'base': {('a',): 1}}
        >>> route({("a",): 1}, ["one", "two"], ())
        {'one': {('a',): 1}, 'two': {('a',): 1}}
    """
    if not delta:
        return {}
    if len(destinations) == 1 or not partition:
        return dict.fromkeys(destinations, delta)
    key_of = picker(partition)
    parts: dict[str, Delta] = {}
    for row, weight in delta.items():
        parts.setdefault(site_of(key_of(row), destinations), {})[row] = weight
    return parts
