"""Results of pure functions of plans and expressions, by all that these say.

Python's equality does not tell -0.0 from 0.0, so a plan may equal another one that gives other
rows. Their bytes differ.
"""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

import msgspec

Argument = TypeVar("Argument")
Result = TypeVar("Result")

encode = msgspec.msgpack.Encoder().encode


def exactly_cached(
    most: int,
) -> Callable[[Callable[[Argument], Result]], Callable[[Argument], Result]]:
    """Return a decorator that remembers results, of about that many arguments at most."""

    def decorated(function: Callable[[Argument], Result]) -> Callable[[Argument], Result]:
        known: dict[bytes, Result] = {}

        @wraps(function)
        def cached(argument: Argument) -> Result:
            key = encode(argument)
            found = known.get(key)
            if found is None:
                if len(known) >= most:
                    known.clear()
                found = known[key] = function(argument)
            return found

        return cached

    return decorated
