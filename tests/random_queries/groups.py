"""Random aggregates and what is computed from them."""

from tests.random_queries.expressions import KINDS, Expressions
from tests.random_queries.scopes import Workshop, columns_of, dual, ours, theirs


def call(shop: Workshop, inner: Expressions, *, exact: bool) -> tuple[str, str]:
    """Return an aggregate and its type.

    Args:
        shop: The case.
        inner: Makes arguments.
        exact: Whether the last digits matter; if so DuckDB is not asked about spreads.
    """
    random = shop.random
    kind = random.choice(KINDS)
    choice = random.randrange(15)
    if shop.user_aggregate and random.random() < 0.4:
        return _filtered(shop, inner, f"{shop.user_aggregate}({inner.of('DOUBLE', 1)})"), "DOUBLE"
    if choice == 0:
        return _filtered(shop, inner, "COUNT(*)"), "INTEGER"
    if choice == 1:
        distinct = random.choice(("", "DISTINCT "))
        return _filtered(shop, inner, f"COUNT({distinct}{inner.of(kind, 1)})"), "INTEGER"
    if choice in {2, 3}:
        return _filtered(shop, inner, f"{random.choice(('MIN', 'MAX'))}({inner.of(kind, 1)})"), kind
    if choice == 4:
        function = random.choice(("BOOL_AND", "BOOL_OR"))
        return _filtered(shop, inner, f"{function}({inner.of('BOOLEAN', 1)})"), "BOOLEAN"
    if choice == 5:
        return _best(shop, inner)
    if choice == 6:
        shop.beyond.add("arrays are text here")
        distinct = random.choice(("", "DISTINCT "))
        return f"ARRAY_AGG({distinct}{inner.of(kind, 1)})", "TEXT"
    if choice >= 12:
        return _ordered(shop, inner)
    number = random.choice(("INTEGER", "DOUBLE"))
    value = inner.of(number, 1)
    if choice == 7:
        if exact:
            shop.beyond.add("last digits of spreads")
        functions = ("VAR_SAMP", "VAR_POP", "STDDEV_SAMP", "STDDEV_POP")
        return _filtered(shop, inner, f"{random.choice(functions)}({value})"), "DOUBLE"
    if choice == 8:
        if random.random() < 0.5:
            return f"MEDIAN({value})", "DOUBLE"
        if exact:
            shop.beyond.add("last digits of spreads")
        fraction = random.choice(("0.25", "0.3", "0.9"))
        return f"PERCENTILE_CONT({fraction}) WITHIN GROUP (ORDER BY {value})", "DOUBLE"
    distinct = random.choice(("", "", "DISTINCT "))
    if choice == 9:
        return _filtered(shop, inner, f"AVG({distinct}{value})"), "DOUBLE"
    return _filtered(shop, inner, f"SUM({distinct}{value})"), number


def _ordered(shop: Workshop, inner: Expressions) -> tuple[str, str]:
    """Return an aggregate that gives one of the values, or all texts in order."""
    random = shop.random
    kind = random.choice(("INTEGER", "DOUBLE", "TEXT", "TIMESTAMP"))
    match random.choice((0, 0, 1, 1, 2)):
        case 0:
            text = inner.of("TEXT", 1)
            distinct = random.choice(("", "DISTINCT "))
            peer = f"STRING_AGG({distinct}{theirs(text)}, '-' ORDER BY {theirs(text)})"
            return dual(f"STRING_AGG({distinct}{ours(text)}, '-')", peer), "TEXT"
        case 1:
            fraction = random.choice(("0", "0.25", "0.5", "0.75", "1"))
            return f"QUANTILE_DISC({inner.of(kind, 1)}, {fraction})", kind
        case _:
            value = inner.of(kind, 0)
            shop.beyond.add("ties of MODE")
            return f"MODE({value})", kind


def _filtered(shop: Workshop, inner: Expressions, text: str) -> str:
    return f"{text} FILTER (WHERE {inner.condition(1)})" if shop.chance(0.2) else text


def _best(shop: Workshop, inner: Expressions) -> tuple[str, str]:
    random = shop.random
    kind, by = random.choice(KINDS), random.choice(KINDS)
    values, orders = columns_of(inner.items, kind), columns_of(inner.items, by)
    if not values or not orders:
        return "COUNT(*)", "INTEGER"
    value, order = random.choice(values), random.choice(orders)
    function, way = random.choice((("ARG_MIN", "ASC"), ("ARG_MAX", "DESC")))
    first = f"FIRST({value} ORDER BY {order} {way}, {value} NULLS FIRST)"
    peer = f"{first} FILTER (WHERE {order} IS NOT NULL)"
    return dual(f"{function}({value}, {order})", peer), kind
