"""Random aggregates and what is computed from them."""

from tests.random_queries.expressions import KINDS, Expressions
from tests.random_queries.scopes import Workshop, columns_of, dual, ours, postgres, theirs


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
        extremum = random.choice(("MIN", "MAX", dual("ANY_VALUE", "MIN", "MIN")))
        return _filtered(shop, inner, f"{extremum}({inner.of(kind, 1)})"), kind
    if choice == 4:
        function = random.choice(("BOOL_AND", "BOOL_OR"))
        return _filtered(shop, inner, f"{function}({inner.of('BOOLEAN', 1)})"), "BOOLEAN"
    if choice == 5:
        return _best(shop, inner)
    if choice == 6 and not shop.for_postgres:
        shop.beyond.add("arrays are text here")
        distinct = random.choice(("", "DISTINCT "))
        return f"ARRAY_AGG({distinct}{inner.of(kind, 1)})", "TEXT"
    if choice >= 12 or choice == 6:
        return _ordered(shop, inner)
    number = random.choice(("INTEGER", "DOUBLE"))
    value = inner.of(number, 1)
    if choice == 7 and not (exact and shop.for_postgres):
        if exact:
            shop.beyond.add("last digits of spreads")
        functions = ("VAR_SAMP", "VAR_POP", "STDDEV_SAMP", "STDDEV_POP")
        return _filtered(shop, inner, f"{random.choice(functions)}({value})"), "DOUBLE"
    if choice == 8:
        if random.random() < 0.5:
            own = f"PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY {postgres(value)})"
            median = f"MEDIAN({ours(value)})", f"MEDIAN({theirs(value)})", own
            return _filtered(shop, inner, dual(*median)), "DOUBLE"
        if exact and not shop.for_postgres:
            shop.beyond.add("last digits of spreads")
        # Quarters of values of few binary digits are exact.
        fraction = random.choice(("0.25", "0.75") if exact else ("0.25", "0.3", "0.9"))
        continuous = f"PERCENTILE_CONT({fraction}) WITHIN GROUP (ORDER BY {value})"
        return _filtered(shop, inner, continuous), "DOUBLE"
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
            forms = (
                f"STRING_AGG({distinct}{ours(text)}, '-')",
                f"STRING_AGG({distinct}{theirs(text)}, '-' ORDER BY {theirs(text)})",
                f"STRING_AGG({distinct}{postgres(text)}, '-' ORDER BY {postgres(text)})",
            )
            return _filtered(shop, inner, dual(*forms)), "TEXT"
        case 1:
            fraction = random.choice(("0", "0.25", "0.5", "0.75", "1"))
            value = inner.of(kind, 1)
            forms = (
                f"QUANTILE_DISC({ours(value)}, {fraction})",
                f"QUANTILE_DISC({theirs(value)}, {fraction})",
                f"PERCENTILE_DISC({fraction}) WITHIN GROUP (ORDER BY {postgres(value)})",
            )
            return _filtered(shop, inner, dual(*forms)), kind
        case _:
            value = inner.of(kind, 0)
            if not shop.for_postgres:
                shop.beyond.add("ties of MODE")
            own = f"MODE() WITHIN GROUP (ORDER BY {postgres(value)})"
            forms = f"MODE({ours(value)})", f"MODE({theirs(value)})", own
            return _filtered(shop, inner, dual(*forms)), kind


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
    chosen, kept = "", f"{order} IS NOT NULL"
    if shop.chance(0.2):
        condition = inner.condition(1)
        chosen = f" FILTER (WHERE {ours(condition)})"
        kept += f" AND ({theirs(condition)})"
        own = f"{order} IS NOT NULL AND ({postgres(condition)})"
    else:
        own = kept
    best = f"ARRAY_AGG({value} ORDER BY {order} {way}, {value} NULLS FIRST)"
    return dual(
        f"{function}({value}, {order}){chosen}",
        f"{first} FILTER (WHERE {kept})",
        f"({best} FILTER (WHERE {own}))[1]",
    ), kind
