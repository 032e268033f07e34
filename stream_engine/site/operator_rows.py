"""The operators of a circuit: what they are, what feeds them, and what they have done."""

from collections.abc import Iterator
from dataclasses import dataclass

from stream_engine.circuit.circuit import Circuit
from stream_engine.circuit.nodes import Node, RemoteNode
from stream_engine.site.measured_values import Measured


@dataclass(frozen=True, slots=True)
class RunningOperator:
    """A row of `sys_operators` without its time and site.

    Attributes:
        entity: "f1/3": number 3 in the circuit of fragment f1.
        operator: The line EXPLAIN shows.
        inputs: What feeds it, in the order of its ports: operators of its own circuit ("f1/1
            f1/2"), or the fragment whose rows it receives ("f2").
    """

    query: str
    entity: str
    operator: str
    inputs: str


def running_operators(query: str, fragment: str, circuit: Circuit) -> Iterator[RunningOperator]:
    """Yield the operators of a circuit, inputs before their consumers."""
    feeds = _feeds(circuit)
    for number, node in enumerate(circuit.nodes):
        inputs = " ".join(f"{fragment}/{producer}" for producer in feeds[number])
        if isinstance(node, RemoteNode):
            inputs = node.fragment
        yield RunningOperator(query, f"{fragment}/{number}", node.wiring.label(), inputs)


def measured_operators(
    query: str, version: int, fragment: str, circuit: Circuit, told: frozenset[str]
) -> Iterator[Measured]:
    """Yield what the operators of a circuit have counted, and the synopses they keep.

    Args:
        query: Whose circuit it is.
        version: Of its plan.
        fragment: Of that.
        circuit: The operators.
        told: Operators whose synopses are told of elsewhere, because they may be shared.
    """
    for number, node in enumerate(circuit.nodes):
        entity, rows = f"{fragment}/{number}", node.state_rows()
        yield _operator(query, version, entity, node, rows)
        if rows and entity not in told:
            held = {"rows": rows, "shared": 0}
            yield Measured(query, "synopsis", entity, version, gauges=held)


def _operator(query: str, version: int, entity: str, node: Node, rows: int) -> Measured:
    wiring = node.wiring
    counters: dict[str, float] = {"rows_in": wiring.rows_in, "rows_out": wiring.rows_out}
    timed: dict[str, float] = {}
    if wiring.runs:
        counters["retractions"] = wiring.retractions
        timed = {"busy_ms": wiring.busy_ns / 1e6, "_busy_us": wiring.busy_ns / 1e3}
    return Measured(
        query,
        "operator",
        entity,
        version,
        counters=counters,
        totals=timed,
        gauges={"state_rows": rows},
        ratios={"selectivity": ("rows_out", "rows_in")},
        later_ratios={"us_per_row": ("_busy_us", "rows_in")} if timed else {},
    )


def _feeds(circuit: Circuit) -> list[list[int]]:
    """Return the numbers of the nodes that feed each node, in the order of its ports."""
    found: list[list[tuple[int, int]]] = [[] for _ in circuit.nodes]
    for producer, node in enumerate(circuit.nodes):
        for consumer, port in node.wiring.consumers:
            found[consumer].append((port, producer))
    return [[producer for _port, producer in sorted(ports)] for ports in found]
