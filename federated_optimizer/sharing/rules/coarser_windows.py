"""Groups of windows from groups of shorter windows that nest in them.

| wanted | node | if |
|---|---|---|
| TUMBLE or HOP of size S every H from O | TUMBLE of size s from o | s divides S, H and O - o |

Then the windows of the node lie whole in each wanted window or outside of it, and a window of the
node is in the wanted windows that its beginning is in. So the wanted windows are put over the rows
of the node by that time, and these rows are finer groups for `coarser_groups`: of the same keys,
the wanted windows, and the shorter ones. Never from HOP windows that overlap: they count a row more
than once.
"""

from dataclasses import replace

import msgspec

from federated_optimizer.sharing.forms.blocks import Block
from federated_optimizer.sharing.forms.group_blocks import GroupBlock, group_block_of
from federated_optimizer.sharing.refusals import NotSharedError
from federated_optimizer.sharing.rule_bases import Basis
from federated_optimizer.sharing.rules.coarser_groups import over_groups
from streamsql.algebra.expressions import Call, Column, Expression, Literal, columns_of
from streamsql.algebra.operators import HopWindow, Plan, Project, identity_columns
from streamsql.data.types import DataType


def answer(wanted: Plan, offered: Plan, leaf: Plan) -> Plan | None:
    """Return groups of windows over the rows of groups of shorter ones; None: not proven right."""
    ours, theirs = group_block_of(wanted), group_block_of(offered)
    if ours is None or theirs is None:
        return None
    match ours.below.inputs, theirs.below.inputs:
        case (HopWindow() as long,), (HopWindow() as short,) if _nest(long, short):
            pass
        case _:
            return None
    found = _finer(theirs, long, short, leaf)
    if found is None:
        return None
    try:
        return over_groups(ours, *found)
    except NotSharedError:
        return None


def offered(plan: Plan) -> Basis | None:
    """Return the rows in windows that a node groups; None: it groups others, or none."""
    groups = group_block_of(plan)
    match groups:
        case GroupBlock(below=Block(inputs=(HopWindow() as windows,)) as below):
            # Windows of one input over one column differ in what the rule compares by itself.
            rows = msgspec.structs.replace(windows, size=1, hop=1, offset=0)
            return Basis.of_block("windows", replace(below, inputs=(rows,)))
        case _:
            return None


def wanted(plan: Plan) -> tuple[Basis, ...]:
    """Return the rows in windows that a plan groups."""
    basis = offered(plan)
    return () if basis is None else (basis,)


def _nest(long: HopWindow, short: HopWindow) -> bool:
    size = short.size
    is_same = (long.size, long.hop, long.offset % long.hop) == (size, size, short.offset % size)
    nests = not any(n % size for n in (long.size, long.hop, long.offset - short.offset))
    return short.hop == size and nests and not is_same


def _finer(
    theirs: GroupBlock, long: HopWindow, short: HopWindow, leaf: Plan
) -> tuple[GroupBlock, Plan] | None:
    """Return groups by the wanted windows and the shorter ones, and the rows of these."""
    width = len(short.input.schema)
    start, end = width, width + 1
    own = [*theirs.below.predicates, *(a for call in theirs.calls for a in call.arguments)]
    if any(columns_of(e) & {start, end} for e in own):
        return None  # of the shorter windows, not of the rows in them
    places = {
        key.position: place
        for place, key in enumerate(theirs.keys)
        if isinstance(key, Column) and key.position in (start, end)
    }
    shown = {e.position: n for n, e in enumerate(theirs.above.outputs) if isinstance(e, Column)}
    if start not in places or places[start] not in shown or theirs.above.predicates:
        return None
    windows = msgspec.structs.replace(short, size=long.size, hop=long.hop, offset=long.offset)
    time = Column(short.time, "", DataType.TIMESTAMP)
    stride = Literal(short.size, DataType.INTERVAL)
    origin = Literal(short.offset, DataType.TIMESTAMP)
    begins = Call("DATE_BIN", (stride, time, origin), DataType.TIMESTAMP)
    bounds = identity_columns(windows.schema)[width:]
    rest = [n for n, key in enumerate(theirs.keys) if n not in places.values()]
    keys = (*(theirs.keys[n] for n in rest), *bounds, begins)
    if any(columns_of(theirs.keys[n]) & {start, end} for n in rest):
        return None
    names = (*(theirs.names[n] for n in rest), "start", "end", "begins")
    # The leaf shows the beginning of the shorter window, and so do the rows with longer ones.
    over = HopWindow(leaf, shown[places[start]], long.size, long.hop, long.offset)
    columns = identity_columns(over.schema)
    kept: list[Expression] = []
    outputs: list[Expression] = []
    moved = {old: new for new, old in enumerate(rest)}
    moved |= {
        old: old - len(theirs.keys) + len(keys)
        for old in range(len(theirs.keys), len(theirs.schema))
    }
    for place, output in enumerate(theirs.above.outputs):
        if isinstance(output, Column) and output.position in moved:
            kept.append(columns[place])
            outputs.append(Column(moved[output.position], output.name, output.dtype))
    first = len(rest)
    kept += [*columns[-2:], columns[shown[places[start]]]]
    outputs += [Column(first + n, "", DataType.TIMESTAMP) for n in range(3)]
    shown_names = tuple(f"c{n}" for n in range(len(kept)))
    rows = Project(over, tuple(kept), shown_names)
    below = replace(theirs.below, inputs=(windows,), outputs=keys, names=names)
    above = replace(theirs.above, outputs=tuple(outputs), names=shown_names)
    return replace(theirs, below=below, names=names, above=above), rows
