"""The single values in payloads of objects, and which array in them holds rows."""

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

MAX_FIELDS = 200
"""Of one kind of payload."""
MAX_LEVELS = 8
MAX_PATH = 200
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")

_Steps = tuple[str, ...]


class PayloadField(msgspec.Struct):
    """A field that holds one value.

    Attributes:
        steps: Names from the outside in.
        values: What it held, in the order of the payloads; nulls are left out.
        places: Numbers of the payloads that have it with a value.
    """

    steps: _Steps
    values: list[object] = []
    places: list[int] = []

    @property
    def path(self) -> str:
        """The field path, as FROM takes it."""
        return path_text(self.steps)


def fields_of(elements: Iterable[object]) -> dict[_Steps, PayloadField]:
    """Return the fields of objects that hold single values wherever they are there."""
    found: dict[_Steps, PayloadField] = {}
    refused: set[_Steps] = set()
    for place, element in enumerate(elements):
        for steps, value in _walked(element, ()):
            if isinstance(value, dict | list | bytes):
                refused.add(steps)
            elif value is not None and (steps in found or len(found) < MAX_FIELDS):
                field = found.setdefault(steps, PayloadField(steps))
                field.values.append(value)
                field.places.append(place)
    return {
        steps: field
        for steps, field in found.items()
        if steps not in refused and len(field.path) <= MAX_PATH
    }


def path_text(steps: _Steps) -> str:
    """Return a field path.

    Examples:
        >>> path_text(("ENERGY", "Total")), path_text(("a", "b.c"))
        ('ENERGY.Total', 'a["b.c"]')
    """
    text = ""
    for step in steps:
        if _PLAIN.fullmatch(step):
            text += f".{step}" if text else step
        else:
            escaped = step.replace("\\", "\\\\").replace('"', '\\"')
            text += f'["{escaped}"]'
    return text


def array_of_rows(roots: Sequence[object]) -> str:
    """Return the option `rows` for payloads whose rows are the elements of an array, or empty.

    The payload itself is the array, or holds one array of several objects beside fewer fields.

    Examples:
        >>> array_of_rows([[{"a": 1}]]), array_of_rows([{"sensors": [{"v": 1}, {"v": 2}]}])
        ('[*]', 'sensors[*]')
    """
    if roots and all(isinstance(root, list) for root in roots):
        return "[*]"
    candidates: set[str] = set()
    for root in roots:
        if not isinstance(root, dict):
            return ""
        arrays = {name for name, value in root.items() if _holds_rows(value)}
        candidates = arrays if not candidates else candidates & arrays
        if len(candidates) != 1:
            return ""
    name = candidates.pop() if candidates else ""
    if not name or not any(len(_array(root, name)) > 1 for root in roots):
        return ""
    beside = max(sum(not isinstance(v, list) for v in _object(root).values()) for root in roots)
    within = max(len(element) for root in roots for element in _array(root, name))
    return f"{path_text((name,))}[*]" if beside <= within + 2 else ""


def _walked(value: object, steps: _Steps) -> Iterator[tuple[_Steps, object]]:
    if not isinstance(value, dict) or len(steps) >= MAX_LEVELS:
        if steps:
            yield steps, value
        return
    for name, below in value.items():
        if isinstance(name, str):
            yield from _walked(below, (*steps, name))


def _holds_rows(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(e, dict) for e in value)


def _object(root: object) -> dict[str, object]:
    return root if isinstance(root, dict) else {}


def _array(root: object, name: str) -> list[dict[str, object]]:
    found = _object(root).get(name)
    return found if isinstance(found, list) else []
