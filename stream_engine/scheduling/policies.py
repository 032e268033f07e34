"""The policies by name."""

from stream_engine.scheduling.chain import ChainScheduler
from stream_engine.scheduling.fifo import FifoScheduler
from stream_engine.scheduling.greedy import GreedyScheduler
from stream_engine.scheduling.round_robin import RoundRobinScheduler
from stream_engine.scheduling.scheduler import Scheduler
from streamsql.wire.site_settings import SchedulerKind


def scheduler_of(kind: SchedulerKind) -> Scheduler:
    """Return a new scheduler; it has seen nothing yet."""
    match kind:
        case SchedulerKind.FIFO:
            return FifoScheduler()
        case SchedulerKind.GREEDY:
            return GreedyScheduler()
        case SchedulerKind.CHAIN:
            return ChainScheduler()
        case SchedulerKind.ROUND_ROBIN:
            return RoundRobinScheduler()
