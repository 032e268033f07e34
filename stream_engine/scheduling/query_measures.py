"""What waits between the operators of a query at a site."""

from collections.abc import Iterator, Sequence

from stream_engine.circuit.circuit import Circuit
from stream_engine.scheduling.measures import QueueMeasures
from stream_engine.scheduling.query_work import QueryWork
from stream_engine.scheduling.tasks import PortMeasures
from streamsql.wire.fragments import Fragment

QueryPlan = Sequence[tuple[Fragment, Circuit]]
"""The fragments of a query at a site, producers first."""


def measures_of_queues(
    query: str, plan: QueryPlan, work: QueryWork | None
) -> Iterator[QueueMeasures]:
    """Yield what waits between any two operators of a fragment.

    Args:
        query: Its name.
        plan: Its fragments here.
        work: Its queues; None where nothing has ever waited.
    """
    for fragment, circuit in plan:
        for number in range(len(circuit.nodes)):
            task = None if work is None else work.queue_of(fragment.id, number)
            for port, producer in enumerate(circuit.producers(number)):
                measures = PortMeasures() if task is None else task.ports[port]
                yield QueueMeasures(
                    query,
                    f"{fragment.id}/{producer}-{number}.{port}",
                    measures.rows,
                    measures.batches,
                    measures.peak_rows,
                )
