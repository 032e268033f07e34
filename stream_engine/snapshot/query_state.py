"""The saved state of a query at one site, and whether it needs any.

Most queries need none: their answer is a function of the sources' rows and of what other sites send
again when asked, so they restart on restored sources. Where input was discarded (a log passes its
rows on and keeps none) or output is permanent (a closed window), the operators' own state is the
only record, and is saved.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stream_engine.circuit.circuit import Circuit
from stream_engine.circuit.nodes import OperatorNode, RemoteNode, SourceNode
from stream_engine.operators.windows.rows_window import RowsWindow
from stream_engine.scheduling.site_work import SiteWork
from stream_engine.sharing.versions import as_private
from stream_engine.snapshot.column_codec import UnsavableError
from stream_engine.snapshot.state_places import Place, fill, names, places_of, read
from streamsql.algebra.operators import Scan, Window, WindowKind, walk_plan
from streamsql.algebra.streams import keeps_history
from streamsql.errors import InternalError
from streamsql.wire.channel_protocol import Forgotten
from streamsql.wire.fragments import FragmentBundle

if TYPE_CHECKING:
    from stream_engine.site.installed_query import InstalledQuery


def memory_of(
    bundle: FragmentBundle,
    site: str,
    *,
    heard: bool = False,
    is_passed: Callable[[Window], bool] = lambda _window: False,
) -> int | None:
    """Return for how many microseconds a query at a site remembers an event.

    None where that is not bounded: a log without a window in time, or windows that close. A keyed
    row without ttl counts as 0: the next reading takes its place.

    Args:
        bundle: The query.
        site: The site's id.
        heard: Another site has published the event and it was lost on the way: then the row that it
            should have replaced stays until something else replaces it.
        is_passed: Whether a window by count holds only later events.
    """
    longest = 0
    for fragment in bundle.at(site):
        windows = [node for node in walk_plan(fragment.plan) if isinstance(node, Window)]
        below = {id(window.input) for window in windows}
        for node in walk_plan(fragment.plan):
            if keeps_history(node) and id(node) not in below:
                return None
            if isinstance(node, Scan) and not node.is_log:
                if node.ttl is None and heard:
                    return None
                longest = max(longest, node.ttl or 0)
        for window in windows:
            if not window.input.is_log or is_passed(window):
                continue
            size = window.range if window.kind == WindowKind.ROWS else window.size
            if window.kind not in (WindowKind.ROWS, WindowKind.RANGE) or size is None:
                return None
            longest = max(longest, size + (window.slide or 0))
    return longest


def holds_only_later(query: "InstalledQuery", window: Window, newest: int) -> bool:
    """Whether a window by count is full of events later than `newest`: earlier ones are passed.

    False for partitioned windows: a lost event may be the only one of its partition.
    """
    if window.partition:
        return False
    circuits, _inbox, _outbox = query.parts
    for circuit in circuits.values():
        for node in circuit.nodes:
            if isinstance(node, SourceNode) and node.wiring.plan == window:
                held = as_private(node.operator)
                if not isinstance(held, RowsWindow):
                    return False
                inside = [
                    entry for entries, _before in held.contents().values() for entry in entries
                ]
                if len(inside) < held.size or min(inside)[0] <= newest:
                    return False
    return True


class QueryLayout:
    """The places of the state of a query's operators.

    Args:
        query: Just compiled, never stepped.

    Raises:
        UnsavableError: It has an operator whose state cannot be saved; says which.
    """

    def __init__(self, query: "InstalledQuery") -> None:
        circuits, _inbox, _outbox = query.parts
        self._places: dict[str, list[dict[Place, int]]] = {
            name: [places_of(operator) for operator in _operators(circuit)]
            for name, circuit in circuits.items()
        }

    def save(self, query: "InstalledQuery", batch: int) -> dict[str, Any]:
        """Return the query's state after step number `batch`, queues included; nothing is copied.

        Raises:
            UnsavableError: There is state where none is expected.
        """
        circuits, inbox, outbox = query.parts
        return {
            "circuits": {
                name: _saved_circuit(circuit, self._places[name])
                for name, circuit in circuits.items()
            },
            "received": {
                sender: (channel.epoch, channel.expected, channel.contents)
                for sender, channel in inbox.channels.items()
            },
            "sent": {to: channel.contents for to, channel in outbox.channels.items()},
            "forgotten": [
                {name: _saved_forgotten(end.forgotten) for name, end in inbox.channels.items()},
                {name: _saved_forgotten(end.forgotten) for name, end in outbox.channels.items()},
            ],
            "waiting": [] if query.waiting is None else query.waiting.save(batch),
        }

    def restore(self, query: "InstalledQuery", state: dict[str, Any], site_work: SiteWork) -> None:
        """Fill a query that was just compiled from the same plan with a saved state.

        Its channels are out of step: what was sent meanwhile is not known, so the first step sends
        snapshots, and each sender has to be asked for one.

        Raises:
            InternalError: The state is of another plan; the query is of no more use.
        """
        circuits, inbox, outbox = query.parts
        if state["circuits"].keys() != circuits.keys():
            raise InternalError("the saved state is of other fragments")
        for name, circuit in circuits.items():
            _restore_circuit(circuit, self._places[name], state["circuits"][name])
        for sender, (epoch, expected, contents) in state["received"].items():
            channel = inbox.channels[sender]
            channel.epoch, channel.expected, channel.contents = epoch, expected, contents
        for to, contents in state["sent"].items():
            outbox.channels[to].contents.update(contents)
        here, there = state.get("forgotten", ({}, {}))  # an earlier version's has none
        for sender, (watermark, bounds) in here.items():
            inbox.channels[sender].forgotten = Forgotten(watermark, dict(bounds))
        for to, (watermark, bounds) in there.items():
            outbox.channels[to].forgotten = Forgotten(watermark, dict(bounds))
        waiting = state.get("waiting")  # a snapshot of an earlier version has none
        if waiting:
            query.queues(site_work).restore(waiting)
        query.resume()


def _saved_forgotten(forgotten: Forgotten) -> tuple[int | None, dict[str, tuple[int, int]]]:
    return (forgotten.watermark, forgotten.bounds)


def _operators(circuit: Circuit) -> list[object]:
    """Return the operators of a circuit in order, as if none of them shared its rows.

    Raises:
        UnsavableError: One of them cannot be saved.
    """
    operators: list[object] = []
    for node in circuit.nodes:
        if isinstance(node, OperatorNode | SourceNode):
            operators.append(as_private(node.operator))
        elif isinstance(node, RemoteNode):
            operators.append(node.wiring.plan)  # nothing: the channel remembers
        else:
            raise UnsavableError(f"the state of {node.wiring.label():.80} is not saved")
    return operators


def _saved_circuit(circuit: Circuit, places: list[dict[Place, int]]) -> dict[str, Any]:
    """Return names of the places, values at them, and counts."""
    operators = _operators(circuit)
    return {
        "names": [names(where) for where in places],
        "values": [read(op, where) for op, where in zip(operators, places, strict=True)],
        "counts": [(node.wiring.rows_in, node.wiring.rows_out) for node in circuit.nodes],
    }


def _restore_circuit(
    circuit: Circuit, places: list[dict[Place, int]], state: dict[str, Any]
) -> None:
    if state["names"] != [names(where) for where in places]:
        raise InternalError("the saved state is of another plan or another version")
    for operator, where, values in zip(_operators(circuit), places, state["values"], strict=True):
        fill(operator, where, values)
    for node, (rows_in, rows_out) in zip(circuit.nodes, state["counts"], strict=True):
        node.wiring.rows_in, node.wiring.rows_out = rows_in, rows_out
