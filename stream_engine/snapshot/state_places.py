"""The places of an operator's state, found on one that has none yet.

A fresh operator holds the parts that its plan determines (functions, positions, classes) and empty
containers. Its later state is in these containers and in its plain attributes. So the places are
listed on a fresh operator, read on one that runs, and filled, in place, on a fresh one again:
functions that refer to a container find the restored content in it.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Any

from stream_engine.snapshot.column_codec import UnsavableError, attributes, is_engine_object
from streamsql.errors import InternalError

Place = tuple[str | int, ...]
"""Attribute names and, inside containers that the plan has filled, positions."""

_PLAIN = frozenset((type(None), bool, int, float, str, bytes))
_MUTABLE = (list, dict, set)
_MOST_PLACES = 5_000
_VALUE, _UNSET = -1, -2
"""The content of a place that is no container which the plan has filled."""


def places_of(fresh: object) -> dict[Place, int]:
    """Return the places of an object that has no state yet.

    Each maps to -1 for a value, -2 for nothing yet, or the length of a container that the plan has
    filled.

    Raises:
        UnsavableError: It has more places than any operator should have.
    """
    places: dict[Place, int] = {}
    for place, length in _places((), fresh, set()):
        places[place] = length
        if len(places) > _MOST_PLACES:
            raise UnsavableError(f"{type(fresh).__name__} has more than {_MOST_PLACES} places")
    return places


def _places(place: Place, value: Any, seen: set[int]) -> Iterator[tuple[Place, int]]:
    if type(value) in _PLAIN:
        yield place, _VALUE
    elif isinstance(value, list | tuple | dict) and any(map(_is_part, _parts(value))):
        yield place, len(value)
        for position, part in enumerate(_parts(value)):
            yield from _places((*place, position), part, seen)
    elif isinstance(value, tuple | list | dict | set | frozenset):
        yield place, _VALUE
    elif _is_fixed(value):
        return
    elif not is_engine_object(value):
        raise UnsavableError(f"{_name(place)} is a {type(value).__qualname__}")
    elif id(value) not in seen:
        seen.add(id(value))
        if hasattr(value, "__dict__"):
            yield (*place, "__dict__"), len(value.__dict__)  # another attribute would be missed
        for name in attributes(type(value), value):
            if hasattr(value, name):
                yield from _places((*place, name), getattr(value, name), seen)
            else:
                yield (*place, name), _UNSET


def _parts(container: Any) -> list[Any]:
    return list(container.values() if isinstance(container, dict) else container)


def _is_part(value: object) -> bool:
    """Whether something inside a container is more than a plain value or a tuple of some."""
    if isinstance(value, tuple):
        return any(map(_is_part, value))
    return type(value) not in _PLAIN and not isinstance(value, frozenset)


def _is_fixed(value: object) -> bool:
    """Whether something never changes: functions, parts of plans, frozen objects."""
    parameters = getattr(type(value), "__dataclass_params__", None)
    return (
        callable(value)
        or isinstance(value, Enum)
        or type(value).__module__.partition(".")[0] == "streamsql"
        or (parameters is not None and bool(parameters.frozen))
    )


def read(value: object, places: dict[Place, int]) -> list[Any]:
    """Return the values at the places of an object that runs, in order; nothing is copied.

    Raises:
        UnsavableError: It has grown where only the plan should have put something.
    """
    values = []
    for place, length in places.items():
        if length == _UNSET:
            if hasattr(_at(value, place[:-1]), str(place[-1])):
                raise UnsavableError(f"{type(value).__name__} has set {_name(place)}")
            continue
        try:
            found = _at(value, place)
        except (AttributeError, LookupError):
            raise UnsavableError(f"{type(value).__name__} has no {_name(place)} any more") from None
        if length == _VALUE:
            values.append(found)
        elif len(found) != length:
            raise UnsavableError(f"{type(value).__name__} has changed {_name(place)}")
    return values


def fill(fresh: object, places: dict[Place, int], values: list[Any]) -> None:
    """Put values, as `read` gave them, into a fresh object.

    Raises:
        InternalError: They do not fit.
    """
    leaves = [place for place, length in places.items() if length == _VALUE]
    if len(leaves) != len(values):
        raise InternalError(f"{len(values)} saved values for {len(leaves)} places")
    for place, value in zip(leaves, values, strict=True):
        current = _at(fresh, place)
        if isinstance(current, _MUTABLE):
            if type(current) is not type(value):
                raise InternalError(f"saved value of {_name(place)} is of another type")
            current.clear()
            if isinstance(current, list):
                current.extend(value)
            else:
                current.update(value)
        elif isinstance(place[-1], str):
            setattr(_at(fresh, place[:-1]), place[-1], value)
        elif current != value:
            raise InternalError(f"saved value of {_name(place)} differs from the plan's")


def names(places: dict[Place, int]) -> list[str]:
    """Return the places as text, to check whether saved state fits."""
    return [f"{_name(place)}:{length}" for place, length in places.items()]


def _at(value: Any, place: Place) -> Any:
    for step in place:
        value = getattr(value, step) if isinstance(step, str) else _parts(value)[step]
    return value


def _name(place: Place) -> str:
    return ".".join(map(str, place))
