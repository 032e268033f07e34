"""Processor time of the sites of a plan, as the optimizer estimates it with given constants."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from federated_optimizer import Topology
from federated_optimizer.search.choosing import Search
from federated_optimizer.statistics.planning_statistics import Statistics
from federated_optimizer.statistics.speeds import DEFAULT_SPEEDS, Micros, Speeds
from federated_optimizer.statistics.wires import DEFAULT_WIRES
from streamsql.algebra.operators import Plan


@dataclass(frozen=True, slots=True)
class Constants:
    """Constants of processor time.

    Attributes:
        micros: Of operators, at all sites.
        batch: Microseconds of a batch.
        byte: Nanoseconds of a byte of it.
    """

    micros: Micros
    batch: float
    byte: float


FREE = Micros(**dict.fromkeys((each.name for each in fields(Micros)), 0.0))

DEFAULTS = Constants(Micros(), DEFAULT_WIRES.batch_microseconds, DEFAULT_WIRES.byte_nanoseconds)
GUESSED = Constants(
    Micros(
        step=0.0,
        filter=2.0,
        filter_row=2.0,
        window=2.0,
        join=10.0,
        join_row=10.0,
        group=10.0,
        group_row=10.0,
        recursion=200.0,
    ),
    100.0,
    0.0,
)
"""Constants of before there were measured ones: guesses, without a price of steps and bytes."""


def constants_of(measured: Mapping[str, float]) -> Constants:
    """Return constants by the names of a calibration."""
    micros = Micros(**{each.name: measured[f"{each.name}_microseconds"] for each in fields(Micros)})
    return Constants(micros, measured["batch_microseconds"], measured["byte_nanoseconds"])


def estimated(
    ready: Plan, topology: Topology, known: Statistics, number: int, constants: Constants
) -> tuple[float, float]:
    """Return milliseconds of processor a second at all gateways, and at the base, of a plan.

    Either end has half of what a batch takes. The clients of a broker are left out: a simulated
    network has none.
    """

    def of(gateway: Micros, base: Micros, batch: float, byte: float) -> float:
        wires = replace(
            known.wires,
            message_microseconds=0.0,
            batch_microseconds=batch,
            byte_nanoseconds=byte,
        )
        speeds: Speeds = replace(DEFAULT_SPEEDS, gateway=gateway, base=base)
        facts = replace(known, wires=wires, speeds=speeds)
        return Search(ready, topology, facts).plan(number).cost.cpu

    sent = of(FREE, FREE, constants.batch, constants.byte) / 2
    at_gateways = of(constants.micros, FREE, 0.0, 0.0)
    at_base = of(FREE, constants.micros, 0.0, 0.0)
    return at_gateways + sent, at_base + sent
