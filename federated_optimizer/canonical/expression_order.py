"""A fixed order of expressions, by which operands that may be exchanged are sorted."""

from streamsql.algebra.expressions import Call, Column, Expression, Literal

Key = tuple[int, str, int, tuple["Key", ...]]
"""Kind of node, what it says, its position, and its arguments."""


def order_key(expression: Expression) -> Key:
    """Return a key to sort by: equal for equal expressions, names of columns aside.

    Examples:
        >>> from streamsql.data.types import DataType
        >>> a, b = (Column(n, "", DataType.INTEGER) for n in (0, 1))
        >>> order_key(a) < order_key(b) < order_key(Literal(1, DataType.INTEGER))
        True
    """
    # Types are texts themselves: their `value` takes ten times as long to be read.
    match expression:
        case Column(position=position, dtype=dtype):
            return (0, dtype, position, ())
        case Call(function=name, arguments=arguments, dtype=dtype):
            return (1, f"{name} {dtype}", 0, tuple(map(order_key, arguments)))
        case Literal(value=value, dtype=dtype):
            return (2, f"{dtype} {value!r}", 0, ())
