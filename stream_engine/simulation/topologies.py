"""Networks to compute over: transit-stub graphs of links, and sensors in a grid.

The transit-stub shape follows GT-ITM as used for declarative networks: domains of 4 transit nodes,
3 stubs a transit node, 8 nodes a stub, hence 100 nodes a domain.
"""

import math
import random
from dataclasses import dataclass

TRANSIT_MS = 50
ACCESS_MS = 10
STUB_MS = 2
TRANSIT_NODES = 4
STUBS_PER_TRANSIT = 3
NODES_PER_STUB = 8


@dataclass(frozen=True, slots=True)
class Link:
    """A directed link with its latency in milliseconds."""

    source: str
    target: str
    latency: int


@dataclass(frozen=True, slots=True)
class TransitStub:
    """A transit-stub network: nodes stub by stub, directed links, each with its opposite."""

    nodes: tuple[str, ...]
    links: tuple[Link, ...]

    def host_of(self, node: str, hosts: int) -> int:
        """Return which of some hosts a node lives on: equal shares in order of the nodes."""
        return self.nodes.index(node) * hosts // len(self.nodes)


class _Builder:
    """Undirected links without repetition, in order of their making."""

    def __init__(self) -> None:
        self.latencies: dict[tuple[str, str], int] = {}

    def connect(self, a: str, b: str, latency: int) -> bool:
        """Add a link unless it is there; return whether it was added."""
        pair = (min(a, b), max(a, b))
        if a == b or pair in self.latencies:
            return False
        self.latencies[pair] = latency
        return True

    def tree(self, nodes: list[str], latency: int, choice: random.Random) -> None:
        """Connect nodes by a random tree."""
        for number in range(1, len(nodes)):
            self.connect(nodes[number], nodes[choice.randrange(number)], latency)


def transit_stub(domains: int = 1, links_per_node: int = 4, *, seed: int = 0) -> TransitStub:
    """Return a connected transit-stub network.

    Args:
        domains: Each has 100 nodes.
        links_per_node: Directed links a node on average: 4 is dense, 2 nearly a tree.
        seed: Of the random links.

    Examples:
        >>> network = transit_stub()
        >>> len(network.nodes), len(network.links)
        (100, 400)
        >>> sorted({link.latency for link in network.links})
        [2, 10, 50]
    """
    choice = random.Random(seed)  # noqa: S311  (a workload, not a secret)
    builder = _Builder()
    nodes: list[str] = []
    stubs: list[list[str]] = []
    transits: list[list[str]] = []
    for domain in range(domains):
        transit = [f"d{domain}t{number}" for number in range(TRANSIT_NODES)]
        transits.append(transit)
        nodes.extend(transit)
        builder.tree(transit, TRANSIT_MS, choice)
        for gate in transit:
            for number in range(STUBS_PER_TRANSIT):
                stub = [f"{gate}s{number}n{node}" for node in range(NODES_PER_STUB)]
                stubs.append(stub)
                nodes.extend(stub)
                builder.tree(stub, STUB_MS, choice)
                builder.connect(choice.choice(stub), gate, ACCESS_MS)
        if domain:
            other = transits[choice.randrange(domain)]
            builder.connect(choice.choice(transit), choice.choice(other), TRANSIT_MS)
    _fill(builder, stubs, transits, links_per_node * len(nodes) // 2, choice)
    links = []
    for (a, b), latency in builder.latencies.items():
        links += [Link(a, b, latency), Link(b, a, latency)]
    return TransitStub(tuple(nodes), tuple(links))


def _fill(
    builder: _Builder,
    stubs: list[list[str]],
    transits: list[list[str]],
    wanted: int,
    choice: random.Random,
) -> None:
    """Add links inside stubs, some inside transit domains, until there are enough or no room."""
    pairs = NODES_PER_STUB * (NODES_PER_STUB - 1) // 2
    room = len(stubs) * pairs + len(transits) * TRANSIT_NODES * (TRANSIT_NODES - 1) // 2
    tries = 100 * room
    while len(builder.latencies) < wanted and tries:
        tries -= 1
        inside_stub = choice.random() < 0.95
        group = choice.choice(stubs if inside_stub else transits)
        a, b = choice.sample(group, 2)
        builder.connect(a, b, STUB_MS if inside_stub else TRANSIT_MS)


@dataclass(frozen=True, slots=True)
class Sensor:
    """A sensor at a place, in metres."""

    name: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class SensorGrid:
    """Sensors, and directed pairs of names within reach of each other, none to itself."""

    sensors: tuple[Sensor, ...]
    neighbours: tuple[tuple[str, str], ...]


def sensor_grid(  # noqa: PLR0913  (a grid has that many numbers)
    columns: int = 10,
    rows: int = 10,
    *,
    spacing: float = 10.0,
    reach: float = 20.0,
    jitter: float = 0.0,
    seed: int = 0,
) -> SensorGrid:
    """Return sensors in a grid.

    Args:
        columns: Sensors a row.
        rows: Rows.
        spacing: Metres between neighbours in the grid.
        reach: Metres up to which two sensors are neighbours.
        jitter: Largest deviation from the grid in metres, per axis.
        seed: Of the deviations.

    Examples:
        >>> grid = sensor_grid(3, 1, reach=10.0)
        >>> grid.neighbours
        (('s0-0', 's1-0'), ('s1-0', 's0-0'), ('s1-0', 's2-0'), ('s2-0', 's1-0'))
    """
    choice = random.Random(seed)  # noqa: S311  (a workload, not a secret)
    sensors = tuple(
        Sensor(
            f"s{column}-{row}",
            column * spacing + choice.uniform(-jitter, jitter),
            row * spacing + choice.uniform(-jitter, jitter),
        )
        for row in range(rows)
        for column in range(columns)
    )
    neighbours = tuple(
        (a.name, b.name)
        for a in sensors
        for b in sensors
        if a is not b and math.dist((a.x, a.y), (b.x, b.y)) <= reach
    )
    return SensorGrid(sensors, neighbours)
