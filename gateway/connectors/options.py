"""Options of endpoints and sources: texts and JSON values to a connector's struct.

A struct may use, besides the types of msgspec, `Seconds`: a duration that reads '5 s' or '0.5'.
"""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from host.files.option_problems import ADD_TO_ENDPOINT, option_problem
from streamsql.data.durations import parse_duration

Options = TypeVar("Options", bound=msgspec.Struct)

LONGEST = 3_200_000_000.0
"""A century in seconds."""


class Seconds(float):
    """A duration; written as a number of seconds, or as text such as '1 h 30 min'."""

    __slots__ = ()


CONNECTOR = "connector"
"""The field of an endpoint that names the kind of its connector."""
CORRECT_TIMES = "correct_times"
"""The field of an endpoint that says whether its devices go by this machine's clock."""


def own_options(settings: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of an endpoint's settings that are its connector's own."""
    common = (CONNECTOR, CORRECT_TIMES)
    return {name: value for name, value in settings.items() if name not in common}


def convert_options(
    given: Mapping[str, object], kind: type[Options], what: str, *, texts: bool = False
) -> Options:
    """Return options as a struct.

    Args:
        given: By name.
        kind: The struct.
        what: Whose they are, for errors: "endpoint home", "source climate".
        texts: Whether all values are texts, as those of a WITH clause are.

    Raises:
        DeploymentError: One is missing, unknown or wrong. Says which, and never a value: it may be
            a secret. What the struct's `__post_init__` raises is said as it is.
    """
    try:
        return msgspec.convert(dict(given), kind, strict=not texts, dec_hook=_decode)
    except msgspec.ValidationError as error:
        add = "write WITH (…, NAME = '…')" if texts else ADD_TO_ENDPOINT
        raise option_problem(what, error, kind, add) from None


def _decode(kind: type, given: object) -> object:
    """Return a value of a type that msgspec does not know.

    Raises:
        ValueError: It is none.
    """
    if kind is not Seconds:
        raise NotImplementedError(f"options cannot be of type {kind.__name__}")
    if isinstance(given, str):
        return Seconds(parse_duration(given) / 1_000_000)
    if isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given < LONGEST:
        return Seconds(given)
    raise ValueError("Expected a duration, such as 5 or '5 s'")
