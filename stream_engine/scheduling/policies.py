"""The policies by name; all but the default are imported when a site is set to them."""

from stream_engine.scheduling.fifo import FifoScheduler
from stream_engine.scheduling.scheduler import Scheduler
from streamsql.wire.site_settings import SchedulerKind


def scheduler_of(kind: SchedulerKind) -> Scheduler:
    """Return a new scheduler; it has seen nothing yet."""
    match kind:
        case SchedulerKind.FIFO:
            return FifoScheduler()
        case SchedulerKind.GREEDY:
            from stream_engine.scheduling.greedy import GreedyScheduler

            return GreedyScheduler()
        case SchedulerKind.CHAIN:
            from stream_engine.scheduling.chain import ChainScheduler

            return ChainScheduler()
        case SchedulerKind.ROUND_ROBIN:
            from stream_engine.scheduling.round_robin import RoundRobinScheduler

            return RoundRobinScheduler()
