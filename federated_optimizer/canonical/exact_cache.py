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

LONGEST = 30_000
"""Bytes of the longest argument that is remembered: memory is bounded by that times their number.

Plans of six joins take some thousand.
"""


def exactly_cached(
    most: int,
) -> Callable[[Callable[[Argument], Result]], Callable[[Argument], Result]]:
    """Return a decorator that remembers results, of about that many arguments at most.

    Arguments never change; those of more than `LONGEST` bytes are not remembered.
    """

    def decorated(function: Callable[[Argument], Result]) -> Callable[[Argument], Result]:
        known: dict[bytes, Result] = {}
        # Most are asked for again as the same object: reading bytes took a fifth of registration.
        # The object is kept, so that no other one gets its id.
        same: dict[int, tuple[Argument, Result]] = {}

        @wraps(function)
        def cached(argument: Argument) -> Result:
            met = same.get(id(argument))
            if met is not None:
                return met[1]
            try:
                key = encode(argument)
            except RecursionError:  # it may still be shallow enough for the function
                return function(argument)
            if len(key) > LONGEST:
                return function(argument)
            if key in known:
                found = known[key]
            else:
                found = function(argument)
                if len(known) >= most:
                    known.clear()
                known[key] = found
            if len(same) >= most:
                same.clear()
            same[id(argument)] = argument, found
            return found

        return cached

    return decorated
