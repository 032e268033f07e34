"""One derivation of a row: of every row that is not known yet, or of one that lost its support."""

from collections.abc import Callable, Container
from typing import Any

from stream_engine.recursion.program.item_tables import NO_ITEMS, ItemTable
from stream_engine.recursion.program.probing import Annotated, ProbePlan, probe
from streamsql.data.types import Row

Tables = Callable[[int], ItemTable]
Conjoin = Callable[[Any, Any], Any]
Known = tuple[Container[Row], Container[Row]]


def derive_new(
    plan: ProbePlan, start: list[Annotated], tables: Tables, conjoin: Conjoin, known: Known
) -> tuple[dict[Row, Any], int]:
    """Return one derivation of every head row that is not known, and how many there were.

    Annotations are only made for what is returned: most derivations lead to known rows.
    """
    holds, head_of = plan.holds, plan.head_of
    partial = [(row, part) for row, part in start if holds is None or holds(row)]
    for step in plan.steps[:-1]:
        partial = probe(step, partial, tables(step.atom), _nested)
    found: dict[Row, Any] = {}
    if not partial:
        return found, 0
    first, second = known
    if not plan.steps:
        for wide, annotation in partial:
            head = head_of(wide)
            if head not in first and head not in second:
                found.setdefault(head, annotation)
        return found, len(partial)
    count = 0
    last = plan.steps[-1]
    key_of, get, skip_none, holds = last.lookup(tables(last.atom))
    for wide, nest in partial:
        key = key_of(wide)
        if key is None and skip_none:
            continue
        for item in get(key, NO_ITEMS):
            joined = wide + item.row
            if holds is None or holds(joined):
                count += 1
                head = head_of(joined)
                if head not in first and head not in second and head not in found:
                    found[head] = (nest, item.sent)
    depth = len(plan.steps)
    return {row: _conjunction(nest, depth, conjoin) for row, nest in found.items()}, count


def _nested(nest: Any, annotation: Any) -> Any:
    return (nest, annotation)


def _conjunction(nest: Any, depth: int, conjoin: Conjoin) -> Any:
    """Return the conjunction that was put off `depth` times."""
    parts = []
    for _ in range(depth):
        nest, part = nest
        parts.append(part)
    for part in reversed(parts):
        nest = conjoin(nest, part)
    return nest


def searcher(
    plan: ProbePlan, tables: Tables, conjoin: Conjoin, true: Any
) -> Callable[[Row, int], list[Any]]:
    """Return a function from a head row to annotations of some of its derivations.

    It searches depth first and stops when it has found as many as its second argument says. It is
    of use until a table is cleared.
    """
    levels = [step.lookup(tables(step.atom)) for step in plan.steps]
    start_holds, head_of = plan.holds, plan.head_of
    last = len(levels) - 1

    def descend(depth: int, wide: Row, held: Any, head: Row, found: list[Any]) -> int:
        """Join from a level on; return how many more derivations are wanted."""
        key_of, get, _, holds = levels[depth]
        wanted = found[0]
        for item in get(key_of(wide), NO_ITEMS):
            joined = wide + item.row
            if holds is not None and not holds(joined):
                continue
            annotation = item.sent if held is true else conjoin(held, item.sent)
            if depth < last:
                wanted = descend(depth + 1, joined, annotation, head, found)
            elif head_of(joined) == head:
                found.append(annotation)
                wanted = found[0] = wanted - 1
            if wanted <= 0:
                break
        return int(wanted)

    def search(head: Row, most: int) -> list[Any]:
        if start_holds is not None and not start_holds(head):
            return []
        found: list[Any] = [most]
        descend(0, head, true, head, found)
        return found[1:]

    return search


def cheapest(plans: tuple[ProbePlan, ...], tables: Tables) -> ProbePlan:
    """Return the plan that looks at the fewest rows, by the sizes of the tables now."""
    if len(plans) == 1:
        return plans[0]
    return min(plans, key=lambda plan: _effort(plan, tables))


def _effort(plan: ProbePlan, tables: Tables) -> float:
    partial, looked_at = 1.0, 0.0
    for step in plan.steps:
        partial *= step.fan_out(tables(step.atom))
        looked_at += partial
    return looked_at
