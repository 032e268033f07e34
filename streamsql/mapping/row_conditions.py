"""The option `only_rows`: which rows of a payload count; the others are ignored."""

import math
import operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import NamedTuple

from streamsql.mapping.conversions import scalar_text
from streamsql.mapping.field_path import MISSING, Getter, fact_name
from streamsql.mapping.payloads.payload_reader import PayloadReader
from streamsql.mapping.shown_values import shown
from streamsql.mapping.source_mapping import SourceMapping

_ORDERS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
OPERATORS = ("=", "!=", *_ORDERS)
_LONGEST_NUMBER = 60


class RowCondition(NamedTuple):
    """One condition; without an operator the field must have a value."""

    path: str
    get: Getter
    is_fact: bool
    operator: str
    text: str
    number: float | None


def row_conditions_of(mapping: SourceMapping, reader: PayloadReader) -> tuple[RowCondition, ...]:
    """Compile the option `only_rows`.

    Raises:
        ValueError: A condition is wrong.
    """
    return tuple(_condition(*parts, mapping, reader) for parts in mapping.only_rows)


def passes(
    conditions: tuple[RowCondition, ...], element: object, facts: Mapping[str, object]
) -> bool:
    """Whether a row meets all conditions; one without a value does not, as NULL in SQL.

    Raises:
        ValueError: A value is no number, but has to be greater or less than one.
    """
    return all(_holds(condition, element, facts) for condition in conditions)


def _condition(
    path: str, comparison: str, text: str, mapping: SourceMapping, reader: PayloadReader
) -> RowCondition:
    number = _number(text)
    if comparison in _ORDERS and number is None:
        raise ValueError(f"only_rows: {path} {comparison} {text!r:.40}: that is no number")
    fact = fact_name(path)
    try:
        get, from_root = reader.getter(path) if fact is None else (_fact(fact), False)
    except ValueError as error:
        raise ValueError(f"only_rows: {error}") from None
    if from_root and mapping.rows:
        raise ValueError(f"only_rows: {path:.60} belongs to the whole payload; write it in only")
    return RowCondition(path, get, fact is not None, comparison, text, number)


def _fact(name: str) -> Getter:
    def get(facts: object) -> object:
        return facts.get(name) if isinstance(facts, Mapping) else None

    return get


def _holds(condition: RowCondition, element: object, facts: Mapping[str, object]) -> bool:
    value = condition.get(facts if condition.is_fact else element)
    if value is MISSING or value is None or value == "":
        return False
    if not condition.operator:
        return True
    number = _number(value) if condition.number is not None else None
    order = _ORDERS.get(condition.operator)
    if order is not None:
        if number is None or condition.number is None:
            raise ValueError(f"only_rows: {condition.path:.60}: {shown(value)} is no number")
        return order(number, condition.number)
    if number is not None and number == condition.number:
        is_equal = True
    else:
        is_equal = scalar_text(value) == condition.text
    return is_equal == (condition.operator == "=")


def _number(value: object) -> float | None:
    """Return a finite number, also of its text; None: it is none."""
    if isinstance(value, str):
        text = value.strip()
        if len(text) > _LONGEST_NUMBER or "_" in text or not text.isascii():
            return None
    elif isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
