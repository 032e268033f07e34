"""Names of types, as columns, parameters and CAST have them."""

from streamsql.data.types import DataType
from streamsql.syntax.cursor import Cursor, did_you_mean, shown

_TYPES = {
    **dict.fromkeys(("TEXT", "VARCHAR", "STRING", "CHAR"), DataType.TEXT),
    **dict.fromkeys(("INTEGER", "INT", "BIGINT", "SMALLINT"), DataType.INTEGER),
    **dict.fromkeys(("DOUBLE", "FLOAT", "REAL", "NUMERIC", "DECIMAL"), DataType.DOUBLE),
    **dict.fromkeys(("DOUBLE PRECISION",), DataType.DOUBLE),
    **dict.fromkeys(("BOOLEAN", "BOOL"), DataType.BOOLEAN),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPTZ"), DataType.TIMESTAMP),
    "INTERVAL": DataType.INTERVAL,
}


def type_named(word: str) -> DataType | None:
    """Return the type a word means, or None.

    Examples:
        >>> type_named("varchar"), type_named("blob")
        (<DataType.TEXT: 'TEXT'>, None)
    """
    return _TYPES.get(" ".join(word.upper().split()))


def parse_type(cursor: Cursor) -> DataType:
    """Step over a type.

    Raises:
        QuerySyntaxError: There is none.
        UnsupportedError: It has a length, or is that of an array.
    """
    token = cursor.token
    dtype = type_named(cursor.word())
    if dtype is None or token is None:
        known = "types are TEXT, INTEGER, DOUBLE, BOOLEAN, TIMESTAMP or INTERVAL"
        hint = did_you_mean(cursor.word(), _TYPES, known)
        cursor.fail("expected a type", hint=hint, code="unknown_type")
    cursor.advance()
    cursor.accept("PRECISION")
    if cursor.at("("):
        cursor.refuse(f"{shown(token)} takes no length", hint=f"write {dtype}", code="unknown_type")
    if cursor.at("["):
        cursor.refuse(
            "columns hold single values, not arrays", hint=f"write {dtype}", code="unknown_type"
        )
    return dtype
