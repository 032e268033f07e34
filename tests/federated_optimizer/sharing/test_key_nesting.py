"""A coarser key computed from a finer one has the value that it has of the row itself."""

from itertools import product

from federated_optimizer.sharing.key_nesting import nested
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.scalar_functions.scalar import compile_expression
from streamsql.algebra.scalar_functions.scalar_time import FIXED, TIMESTAMP_PARTS, TRUNCATIONS
from streamsql.data.types import EARLIEST, LATEST, DataType, Value

TEXT, INTEGER, TIMESTAMP = DataType.TEXT, DataType.INTEGER, DataType.TIMESTAMP
AT, NUMBER, NAME = Column(0, "at", TIMESTAMP), Column(0, "n", INTEGER), Column(0, "s", TEXT)
_DAY, _HOUR = FIXED["DAY"], FIXED["HOUR"]


def truncated(part: str) -> Call:
    return Call("DATE_TRUNC", (Literal(part, TEXT), AT), TIMESTAMP)


def binned(stride: int, origin: int | None = None) -> Call:
    more = () if origin is None else (Literal(origin, TIMESTAMP),)
    return Call("DATE_BIN", (Literal(stride, DataType.INTERVAL), AT, *more), TIMESTAMP)


BINS = (_HOUR // 60, _HOUR // 4, _HOUR, 5 * _HOUR, _DAY, 7 * _DAY, -1)
OF_TIMES: list[Expression] = [
    *map(truncated, TRUNCATIONS),
    *(binned(s, o) for s, o in product(BINS, (None, 0, _HOUR, 4 * _DAY, 7))),
    *(Call("EXTRACT", (Literal(p, TEXT), AT), INTEGER) for p in TIMESTAMP_PARTS),
]
TIMES: list[Value] = [None, 0, -1, -(2**63), -(2**63) + 5, 2**63 - 1, EARLIEST, LATEST]
TIMES += [e + n for e in (EARLIEST, LATEST) for n in (-1, 1, -_DAY, _DAY)]
TIMES += [1_767_225_600_000_000 + n * 37 * _HOUR + n * n * 1_000_003 for n in range(-400, 400)]


def values(expression: Expression, inputs: list[Value]) -> list[Value]:
    compiled = compile_expression(expression)
    return [compiled((each,)) for each in inputs]


def right_nestings(keys: list[Expression], inputs: list[Value]) -> int:
    """Return how many pairs of keys nest, after each nesting is found to be right."""
    found = 0
    for wanted, finer in product(keys, keys):
        column = Column(0, "finer", finer.dtype)
        computed = nested(wanted, finer, column, lambda a, b: a == b)
        if computed is not None:
            found += 1
            assert values(computed, values(finer, inputs)) == values(wanted, inputs), (
                wanted,
                finer,
            )
    return found


def test_keys_of_times_nest() -> None:
    assert right_nestings(OF_TIMES, TIMES) > 400


def test_hours_do_not_come_from_minutes() -> None:
    hour = Call("EXTRACT", (Literal("HOUR", TEXT), AT), INTEGER)
    assert nested(hour, truncated("MINUTE"), AT, lambda a, b: a == b) is None


def test_keys_of_numbers_and_texts_nest() -> None:
    by: list[Expression] = [
        Call("/", (NUMBER, Literal(n, INTEGER)), INTEGER) for n in (-10, -2, 0, 1, 2, 5, 10, 20)
    ]
    assert right_nestings(by, [None, *range(-45, 45), -(2**63), 2**63 - 1]) == 14
    prefixes: list[Expression] = [
        *(Call("LEFT", (NAME, Literal(n, INTEGER)), TEXT) for n in (-1, 0, 1, 3)),
        *(
            Call("SUBSTRING", (NAME, Literal(s, INTEGER), Literal(n, INTEGER)), TEXT)
            for s, n in product((0, 1, 2), (0, 1, 2))
        ),
    ]
    assert right_nestings(prefixes, [None, "", "a", "ab", "abcd"]) == 23
