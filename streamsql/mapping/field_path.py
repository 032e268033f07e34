"""Field paths: `ENERGY.Total`, `sensors[0].value`, `a["odd.name"]`, `$.device`, `sensors[*]`.

A path is parsed once and compiled to a function that reads a decoded payload. A field that is not
there reads as `MISSING`; nothing that a payload holds makes a getter raise.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

MISSING: Final = object()
"""What a getter returns where a payload has no such field; a JSON null is None."""

MAX_PATH = 1_000
MAX_STEPS = 64

Getter = Callable[[object], object]
Step = str | int | None
"""A field's name, an index of an array, or None: every element (`[*]`)."""

_NAME = re.compile(r'[^.\[\]"\s@$](?:[^.\[\]"]*[^.\[\]"\s])?')
_BRACKET = re.compile(r'\[(?:(-?\d{1,9})|(\*)|"((?:[^"\\]|\\.)*)")\]')
_ESCAPE = re.compile(r"\\(.)")


class FieldPath(msgspec.Struct, frozen=True):
    """A parsed path.

    Attributes:
        steps: From the outside in; none: the whole element.
        from_root: Whether it begins at the payload's root although there is a `rows`.
    """

    steps: tuple[Step, ...]
    from_root: bool = False


def parse_field_path(text: str, *, with_elements: bool = False) -> FieldPath:
    """Parse a path.

    Args:
        text: `.` alone means the whole element, `$` the whole payload.
        with_elements: Whether `[*]` is allowed, as in the option `rows`.

    Raises:
        ValueError: It is none; the text says where and what is expected there.

    Examples:
        >>> parse_field_path('a["b.c"][0].d').steps
        ('a', 'b.c', 0, 'd')
        >>> parse_field_path("$.x")
        FieldPath(steps=('x',), from_root=True)
    """
    if len(text) > MAX_PATH:
        raise ValueError(f"a field path has {len(text)} characters; the max is {MAX_PATH}")
    if text in {".", "$"}:
        return FieldPath((), text == "$")
    from_root = text.startswith("$")
    steps = tuple(_steps(text, 1 if from_root else 0))
    if len(steps) > MAX_STEPS:
        raise ValueError(f"{text!r:.60} has {len(steps)} steps; the max is {MAX_STEPS}")
    if None in steps and not with_elements:
        raise ValueError(
            f"{text!r:.60}: [*] is allowed only in the option rows; a column reads one element: [0]"
        )
    return FieldPath(steps, from_root)


def fact_name(text: str) -> str | None:
    """Return the fact that a FROM text names, or None for a path.

    Raises:
        ValueError: There is no name behind the `@`.

    Examples:
        >>> fact_name("@topic"), fact_name("a.b")
        ('topic', None)
    """
    if not text.startswith("@"):
        return None
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,62}", text[1:]):
        raise ValueError(f"{text!r:.60} names no fact: write a name behind @, such as @topic")
    return text[1:]


def compile_getter(steps: tuple[Step, ...]) -> Getter:
    """Return the function that reads a path without `[*]`; what it returns may be `MISSING`."""
    if any(not isinstance(step, str) for step in steps):
        return _mixed(steps)
    match steps:
        case ():
            return _whole
        case (str() as name,):
            return _one_name(name)
        case (str() as outer, str() as inner):
            return _two_names(outer, inner)
        case _:
            return _names(tuple(str(step) for step in steps))


def elements_of(value: object, steps: tuple[Step, ...]) -> Iterator[tuple[object, object]]:
    """Yield (key or index, element) of every element that a path with `[*]` reaches.

    An array's elements have their index, an object's values their key; of nested `[*]` it is the
    innermost. A path without `[*]` at its end reaches the elements of what it names.

    Examples:
        >>> list(elements_of({"s": [{"v": 7}, {"v": 8}]}, ("s", None, "v")))
        [(0, 7), (1, 8)]
    """
    yield from _reached(value, steps if None in steps else (*steps, None), None)


def _reached(
    value: object, steps: tuple[Step, ...], place: object
) -> Iterator[tuple[object, object]]:
    if None not in steps:
        found = compile_getter(steps)(value)
        if found is not MISSING:
            yield place, found
        return
    star = steps.index(None)
    group = compile_getter(steps[:star])(value)
    members: Iterator[tuple[object, object]] = iter(())
    if isinstance(group, dict):
        members = iter(group.items())
    elif isinstance(group, list):
        members = iter(enumerate(group))
    for key, member in members:
        yield from _reached(member, steps[star + 1 :], key)


def _steps(text: str, position: int) -> Iterator[Step]:
    begins = position == 0
    if position == len(text):
        raise ValueError("an empty text is no field path; . alone means the whole payload")
    while position < len(text):
        bracket = _BRACKET.match(text, position)
        if bracket:
            index, star, quoted = bracket.groups()
            position = bracket.end()
            begins = False
            yield None if star else int(index) if index else _ESCAPE.sub(r"\1", quoted)
            continue
        if not begins:
            if text[position] != ".":
                raise _expected(text, position, 'a dot or [0] or ["name"]')
            position += 1
        name = _NAME.match(text, position)
        if not name:
            raise _expected(text, position, 'a name (odd ones as ["odd.name"])')
        position = name.end()
        begins = False
        yield name.group()


def _expected(text: str, position: int, what: str) -> ValueError:
    return ValueError(f"{text!r:.60} is no field path: expected {what} at character {position + 1}")


def _whole(element: object) -> object:
    return element


# Three shapes of paths without an index, since they are nearly all: one loop for all of them
# costs 0.15 µs a column more, a tenth of a small payload (`benchmarks/mapping.py`).
def _one_name(name: str) -> Getter:
    def get(element: object) -> object:
        try:
            return element[name]  # type: ignore[index]
        except (KeyError, TypeError):
            return MISSING

    return get


def _two_names(outer: str, inner: str) -> Getter:
    def get(element: object) -> object:
        try:
            return element[outer][inner]  # type: ignore[index]
        except (KeyError, TypeError):
            return MISSING

    return get


def _names(names: tuple[str, ...]) -> Getter:
    def get(element: object) -> object:
        try:
            for name in names:
                element = element[name]  # type: ignore[index]
        except (KeyError, TypeError):
            return MISSING
        return element

    return get


def _mixed(steps: tuple[Step, ...]) -> Getter:
    def get(element: object) -> object:
        for step in steps:
            # A text has indices too, so the container's type is looked at.
            if isinstance(element, dict):
                element = element.get(step, MISSING)
            elif isinstance(element, list) and isinstance(step, int):
                element = element[step] if -len(element) <= step < len(element) else MISSING
            else:
                return MISSING
        return element

    return get
