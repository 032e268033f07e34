"""Facts as costs are made with them: speeds of engines, and what sending takes."""

from collections.abc import Mapping

from federated_optimizer.statistics.calibrated_constants import BASE, GATEWAYS, constant_of
from federated_optimizer.statistics.fact import Quantity, Subject, SubjectKind
from federated_optimizer.statistics.fact_store import Facts
from federated_optimizer.statistics.speeds import DEFAULT_SPEEDS, Evaluating, Kept, Micros, Speeds
from federated_optimizer.statistics.wires import Wires
from streamsql.wire.site_messages import ENGINES


def wires_of(facts: Facts, hops: Mapping[tuple[str, str], float], now: int) -> Wires:
    """Return what sending takes.

    Args:
        facts: All there are.
        hops: Between gateways.
        now: Wall-clock microseconds: with age a share of batches comes nearer to all of them.
    """
    delivered = {}
    for fact in facts.of_kind(SubjectKind.SITE):
        if fact.quantity == Quantity.DELIVERED:
            sure = fact.confidence_at(now)
            delivered[fact.subject.name] = fact.value * sure + (1.0 - sure)
    return Wires(
        hop_milliseconds=constant_of(facts, "hop_milliseconds"),
        message_microseconds=constant_of(facts, "message_microseconds"),
        batch_microseconds=constant_of(facts, "batch_microseconds"),
        byte_nanoseconds=constant_of(facts, "byte_nanoseconds"),
        delivered=delivered,
        hops=hops,
    )


def speeds_of(facts: Facts) -> Speeds:
    """Return the speeds of engines: as they were timed or calibrated, of others the defaults."""

    def timed(engine: str, default: Evaluating) -> Evaluating:
        subject = Subject(SubjectKind.ENGINE, engine)
        floor = facts.find(subject, Quantity.FLOOR_SECONDS)
        rows = facts.find(subject, Quantity.ROWS_A_SECOND)
        return Evaluating(
            default.floor if floor is None else floor.value,
            default.rows if rows is None or rows.value <= 0 else rows.value,
        )

    local, spark = ENGINES
    return Speeds(
        gateway=_micros(facts, GATEWAYS),
        base=_micros(facts, BASE),
        kept=Kept(
            window=constant_of(facts, "window_bytes"),
            join=constant_of(facts, "join_bytes"),
            group=constant_of(facts, "group_bytes"),
            order=constant_of(facts, "order_bytes"),
            recursion=constant_of(facts, "recursion_bytes"),
        ),
        local=timed(local, DEFAULT_SPEEDS.local),
        spark=timed(spark, DEFAULT_SPEEDS.spark),
    )


def _micros(facts: Facts, sites: str) -> Micros:
    return Micros(
        step=constant_of(facts, "step_microseconds", sites),
        filter=constant_of(facts, "filter_microseconds", sites),
        filter_row=constant_of(facts, "filter_row_microseconds", sites),
        lookup=constant_of(facts, "lookup_microseconds", sites),
        window=constant_of(facts, "window_microseconds", sites),
        join=constant_of(facts, "join_microseconds", sites),
        join_row=constant_of(facts, "join_row_microseconds", sites),
        group=constant_of(facts, "group_microseconds", sites),
        group_row=constant_of(facts, "group_row_microseconds", sites),
        recursion=constant_of(facts, "recursion_microseconds", sites),
    )
