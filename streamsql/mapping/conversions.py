"""One column: from what a payload holds to a legal value of the column's type.

A value is looked up among VALUES, or read as FORMAT says, multiplied by SCALE, shifted by OFFSET
and converted from IN to UNIT, in this order. Arithmetic is on decimal digits, so 217 by SCALE 0.1
is 21.7, not 21.700000000000003.
"""

import math
from collections.abc import Callable
from datetime import timedelta
from decimal import Context, Decimal
from fractions import Fraction

import msgspec

from streamsql.data.durations import parse_duration
from streamsql.data.schema import Field
from streamsql.data.types import MICROSECONDS, DataType, Value, conforms, text_of
from streamsql.mapping.number_formats import Number, NumberFormat, number_reader
from streamsql.mapping.shown_values import shown
from streamsql.mapping.source_mapping import ColumnMapping
from streamsql.mapping.time_formats import TimeFormat, time_reader, zone_named

Conversion = Callable[[object], Value]
"""Raises ValueError, with the reason, for what cannot be a value of the column."""

MAX_TEXT = 4_000

_DIGITS = Context(prec=50, Emax=999_999, Emin=-999_999, traps=[])
_EXACT = 2**53
_DIGITS_OF_64_BITS = 19


def conversion_of(
    field: Field, column: ColumnMapping, *, device_format: bool = False
) -> Conversion:
    """Compile the conversion of one column.

    Args:
        field: The column's name and type.
        column: Its clauses.
        device_format: Whether FORMAT may be the connector's, such as `uint16`: then one that is no
            format of numbers or times is left to it.

    Raises:
        ValueError: A clause is wrong or does not fit the column's type; the text says why.
    """
    if device_format and not _is_our_format(column.format, field.dtype):
        column = msgspec.structs.replace(column, format="")
    _check_clauses(field, column)
    read = _reader(field.dtype, column)
    return _enumerated(field, column, read) if column.values else read


def _reader(dtype: DataType, column: ColumnMapping) -> Conversion:
    match dtype:
        case DataType.DOUBLE:
            return _double(column)
        case DataType.INTEGER:
            return _integer(column)
        case DataType.BOOLEAN:
            return _boolean
        case DataType.TEXT:
            return checked_text
        case DataType.TIMESTAMP:
            return time_reader(column.format, zone_named(column.zone))
        case DataType.INTERVAL:
            return _interval(column)
        case DataType.NULL:
            raise ValueError("a column of a source has a type")


def _double(column: ColumnMapping) -> Conversion:
    read = number_reader(NumberFormat(column.format or "plain"))
    slope, shift = _line_of(column)
    if slope != 1 or shift != 0:
        change = _line(slope, shift)
        return lambda value: _finite(change(read(value)))

    def convert(value: object) -> Value:
        # What most columns of most payloads hold.
        if type(value) is float and math.isfinite(value):
            return value
        return _finite(read(value))

    return convert


def _integer(column: ColumnMapping) -> Conversion:
    read = number_reader(NumberFormat(column.format or "plain"))
    slope, shift = _line_of(column)
    if slope != 1 or shift != 0:
        nearest = _nearest(slope, shift)
        return lambda value: _in_64_bits(nearest(read(value)))

    def convert(value: object) -> Value:
        number = value if type(value) is int else _whole(read(value))
        return _in_64_bits(number)

    return convert


def _interval(column: ColumnMapping) -> Conversion:
    """Numbers are seconds unless IN says otherwise; texts say their units: '90 s', '1 h 30 min'."""
    read = number_reader(NumberFormat(column.format or "plain"))
    slope, shift = _units(column.unit_in or column.unit or "s", "s")
    scale, offset = Fraction(repr(column.scale)), Fraction(repr(column.offset))
    nearest = _nearest(slope * scale * MICROSECONDS, (slope * offset + shift) * MICROSECONDS)

    def convert(value: object) -> Value:
        if isinstance(value, timedelta):
            return _in_64_bits(value // timedelta(microseconds=1))
        try:
            number = read(value)
        except ValueError:
            if isinstance(value, str) and len(value) <= MAX_TEXT:
                return parse_duration(value)
            raise
        return _in_64_bits(nearest(number))

    return convert


def _boolean(value: object) -> Value:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and value in (0, 1):
        return bool(value)
    if isinstance(value, str) and value.strip().lower() in {"true", "false", "0", "1"}:
        return value.strip().lower() in {"true", "1"}
    raise ValueError(
        f"{shown(value)} is neither true nor false; define it: VALUES ('ON' = TRUE, …)"
    )


def checked_text(value: object) -> Value:
    """Return a text, or the text of a number or truth value.

    Raises:
        ValueError: It is none, longer than 4,000 characters, or no Unicode.
    """
    text = value if isinstance(value, str) else scalar_text(value)
    if text is None:
        raise ValueError(f"{shown(value)} is no text; name one value of it in FROM")
    if len(text) > MAX_TEXT:
        raise ValueError(f"a text has {len(text)} characters; the max is {MAX_TEXT}")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"a text is not Unicode at character {error.start + 1}") from None
    return text


def scalar_text(value: object) -> str | None:
    """Return what VALUES and the option `only` compare: whole numbers without a fraction.

    Examples:
        >>> scalar_text(True), scalar_text(1.0), scalar_text(2.5), scalar_text([1])
        ('true', '1', '2.5', None)
    """
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    if isinstance(value, bool | float):
        return text_of(value)
    if isinstance(value, int):
        return str(value) if value.bit_length() <= 1_000 else None
    if isinstance(value, Decimal):
        return str(value)
    return None


def _enumerated(field: Field, column: ColumnMapping, read: Conversion) -> Conversion:
    held = {said: _held(value, field) for said, value in column.values}
    # VALUES that only name what stands for no value, such as '--' = NULL, close no set.
    only_nulls = all(value is None for value in held.values())
    known = ", ".join(repr(said)[:40] for said in list(held)[:6])

    def convert(value: object) -> Value:
        text = scalar_text(value)
        if text is not None and text in held:
            return held[text]
        if only_nulls:
            return read(value)
        raise ValueError(f"{shown(value)} is none of {known}")

    return convert


def _held(value: Value, field: Field) -> Value:
    if field.dtype == DataType.DOUBLE and type(value) is int:
        value = float(value)
    if not conforms(value, field.dtype):
        raise ValueError(f"VALUES: {shown(value)} is no {field.dtype}")
    return value


def _line_of(column: ColumnMapping) -> tuple[Fraction, Fraction]:
    """Return slope and shift of SCALE, OFFSET and the units together."""
    slope, shift = _units(column.unit_in, column.unit)
    scale, offset = Fraction(repr(column.scale)), Fraction(repr(column.offset))
    return slope * scale, slope * offset + shift


def _units(given: str, wanted: str) -> tuple[Fraction, Fraction]:
    if not given and not wanted:
        return Fraction(1), Fraction(0)
    # 0.15 MB of units that a gateway without any does not load.
    from streamsql.mapping.units import unit_conversion  # noqa: PLC0415

    return unit_conversion(given, wanted)


def _line(slope: Fraction, shift: Fraction) -> Callable[[Number], Number]:
    divisor = math.lcm(slope.denominator, shift.denominator)
    factor, addend = int(slope * divisor), int(shift * divisor)
    decimal_factor, decimal_addend, decimal_divisor = map(Decimal, (factor, addend, divisor))

    def change(number: Number) -> Number:
        if isinstance(number, int):
            try:
                # Division of integers rounds once.
                return (number * factor + addend) / divisor
            except OverflowError:
                return math.inf
        digits = number if isinstance(number, Decimal) else Decimal(repr(number))
        return _DIGITS.divide(_DIGITS.fma(digits, decimal_factor, decimal_addend), decimal_divisor)

    return change


def _nearest(slope: Fraction, shift: Fraction) -> Callable[[Number], int]:
    """Return the function to the nearest whole number of the line; halves go up."""
    divisor = math.lcm(slope.denominator, shift.denominator)
    factor, addend = int(slope * divisor), int(shift * divisor)

    def nearest(number: Number) -> int:
        exact = Decimal(repr(number)) if isinstance(number, float) else number
        top, bottom = exact.as_integer_ratio()
        return (2 * (top * factor + addend * bottom) + divisor * bottom) // (2 * divisor * bottom)

    return nearest


def _finite(number: Number) -> float:
    try:
        result = float(number)
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise ValueError("the number is too large for a DOUBLE")
    return result


def _whole(number: Number) -> int:
    if isinstance(number, int):
        return number
    if isinstance(number, Decimal):
        # Before int(), which would write out all digits of 1E+400.
        large = number.adjusted() > _DIGITS_OF_64_BITS
        whole = not large and number == number.to_integral_value()
    else:
        large, whole = False, number.is_integer()
    if large:
        raise ValueError(f"{number!s:.40} does not fit 64 bits")
    if not whole:
        raise ValueError(f"{number!s:.40} has a fraction; the column is an INTEGER")
    return int(number)


def _in_64_bits(number: int) -> int:
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{shown(number)} does not fit 64 bits")
    return number


def _is_our_format(form: str, dtype: DataType) -> bool:
    if dtype == DataType.TIMESTAMP:
        return "%" in form or form in set(TimeFormat)
    return form in set(NumberFormat)


def _check_clauses(field: Field, column: ColumnMapping) -> None:
    numeric = field.dtype.is_numeric or field.dtype == DataType.INTERVAL
    arithmetic = column.scale != 1.0 or column.offset != 0.0
    if arithmetic and not numeric:
        raise ValueError(f"SCALE and OFFSET are for numbers; the column is a {field.dtype}")
    if (column.unit or column.unit_in) and not numeric:
        raise ValueError(f"UNIT and IN are for numbers; the column is a {field.dtype}")
    if not (math.isfinite(column.scale) and math.isfinite(column.offset)) or column.scale == 0:
        raise ValueError("SCALE and OFFSET are finite, and SCALE is not 0")
    if column.zone and field.dtype != DataType.TIMESTAMP:
        raise ValueError(f"ZONE is for times; the column is a {field.dtype}")
    if column.format and numeric and column.format not in set(NumberFormat):
        raise ValueError(
            f"{column.format!r:.60} is no format of numbers: plain, comma, hex or leading"
        )
    if column.format and not numeric and field.dtype != DataType.TIMESTAMP:
        raise ValueError(f"FORMAT is for numbers and times; the column is a {field.dtype}")
