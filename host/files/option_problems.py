"""Faults of options, in words for those who have written them; a value is never shown."""

import enum
import re
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from streamsql.errors import DeploymentError

ADD_TO_ENDPOINT = (
    'with `pando endpoint add`: NAME=…, or --ask NAME for a secret; in a settings file: "NAME": …'
)
"""Spelling of an option of an endpoint."""

_MISSING = re.compile(r"Object missing required field `([^`]+)`")
_UNKNOWN = re.compile(r"Object contains unknown field `([^`]+)`")
_EXPECTED = re.compile(r"Expected `([^`]+)`, got `([^`]+)`")
_INVALID = re.compile(r"Invalid (?:enum )?value .*", re.DOTALL)
_WHERE = re.compile(r" - at `\$\.?([^`]*)`\Z")
_WORDS: Mapping[str, str] = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "null": "nothing",
    "object": "a JSON object",
    "str": "a text",
}


def option_problem(
    what: str, error: Exception, kind: type[msgspec.Struct], add: str
) -> DeploymentError:
    """Return what is wrong with options, and what to do about it.

    Args:
        what: Whose options they are: "endpoint home", "source climate".
        error: Of msgspec, or what the struct's `__post_init__` has raised.
        kind: The struct that was to be made of them.
        add: How to write an option, with NAME for its name.

    Examples:
        >>> class Meter(msgspec.Struct):
        ...     host: str
        >>> try:
        ...     msgspec.convert({}, Meter)
        ... except msgspec.ValidationError as error:
        ...     found = option_problem("endpoint home", error, Meter, "write NAME=…")
        >>> found.message, found.hint
        ('endpoint home needs `host`', 'write host=…; known options: host')
    """
    text = str(error)
    at = _WHERE.search(text)
    where = at.group(1) if at else ""
    text = text[: at.start()] if at else text
    whose = f"{what}: `{where}`" if where else what
    names = [field.encode_name for field in msgspec.structs.fields(kind)]
    known = f"known options: {', '.join(names)}" if names else "it has no options"
    if missing := _MISSING.fullmatch(text):
        name = missing.group(1)
        return DeploymentError(
            f"{whose} needs `{name}`", hint=f"{add.replace('NAME', name)}; {known}"
        )
    if unknown := _UNKNOWN.fullmatch(text):
        from difflib import get_close_matches  # noqa: PLC0415  (rarely needed)

        name = unknown.group(1)
        meant = "".join(f"did you mean {near}?" for near in get_close_matches(name, names, n=1))
        return DeploymentError(
            f"{whose} has no option `{name:.80}`", hint="; ".join(filter(None, (meant, known)))
        )
    if expected := _EXPECTED.fullmatch(text):
        wanted, given = (_words(part) for part in expected.groups())
        return DeploymentError(f"{whose} has to be {wanted}, not {given}", hint=known)
    if _INVALID.fullmatch(text):
        choices = ", ".join(_choices(kind, where))
        return DeploymentError(
            f"{whose} is none of its choices{f': {choices}' if choices else ''}", hint=known
        )
    return DeploymentError(f"{whose}: {text}", hint=known)


def _words(types: str) -> str:
    return " or ".join(_WORDS.get(each, each) for each in types.split(" | "))


def _choices(kind: type[msgspec.Struct], name: str) -> Sequence[str]:
    """Return the values of a field that has few, or none."""
    for field in msgspec.structs.fields(kind):
        if field.encode_name == name:
            return [str(value) for value in _values(field.type)]
    return ()


def _values(kind: Any) -> Sequence[object]:
    if get_origin(kind) is Literal:
        return get_args(kind)
    if get_origin(kind) in {Union, UnionType}:
        return [value for part in get_args(kind) for value in _values(part)]
    is_enum = isinstance(kind, type) and issubclass(kind, enum.Enum)
    return [member.value for member in kind] if is_enum else ()
