"""Regions of a dense sensor grid, where every row has dozens of derivations (400 sensors, 5 m).

Without a bound on annotations this is where provenance explodes; here it must stay small and right.
"""

import random

import pytest

from stream_engine.recursion.absorption.fixpoint_operator import FixpointOperator
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.testing.recursion_programs import region
from streamsql.algebra.choices import Annotations, Shipping
from streamsql.algebra.operators import Scan, walk_plan
from streamsql.data.types import Row

SPACING, SIDE, NEAR = 5, 100, 20.0
POINTS = [(x, y) for x in range(0, SIDE, SPACING) for y in range(0, SIDE, SPACING)]
NEIGHBOURS = [
    [j for j, q in enumerate(POINTS) if (p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 < NEAR**2]
    for p in POINTS
]
OPTIONS = [
    RecursionOptions(shipping=Shipping.WITNESS),
    RecursionOptions(shipping=Shipping.LAZY),
    RecursionOptions(shipping=Shipping.LAZY, annotations=Annotations.BDD),
    RecursionOptions(shipping=Shipping.EAGER, width=2),
]


class Grid:
    """The operator, and the regions by a search from every seed."""

    def __init__(self, options: RecursionOptions) -> None:
        self.operator = FixpointOperator(
            region(NEAR), site="s", sites=("s",), epoch=1, options=options
        )
        self.sources = [
            {node.source for node in walk_plan(leaf) if isinstance(node, Scan)}
            for leaf in self.operator.leaves
        ]
        self.lit: set[int] = set()
        self.seeds = {sensor: number for number, sensor in enumerate((3, 150, 396))}
        self._apply({"sensor"}, {(i, float(x), float(y)): 1 for i, (x, y) in enumerate(POINTS)})

    def _apply(self, sources: set[str], change: dict[Row, int]) -> None:
        self.operator.apply(self.sources.index(sources), change)

    def toggle(self, sensor: int) -> None:
        weight = -1 if sensor in self.lit else 1
        self.lit ^= {sensor}
        self._apply({"triggered"}, {(sensor,): weight})
        if sensor in self.seeds:
            self._apply({"seed", "triggered"}, {(self.seeds[sensor], sensor, sensor): weight})
        self.operator.settle()

    def regions(self) -> set[Row]:
        found: set[Row] = set()
        for seed, number in self.seeds.items():
            todo = [seed] if seed in self.lit else []
            seen = set(todo)
            while todo:
                near = set(NEIGHBOURS[todo.pop()]) & self.lit - seen
                seen |= near
                todo.extend(near)
            found |= {(number, sensor) for sensor in seen}
        return found


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: f"{o.shipping}-{o.annotations}")
def test_regions_are_right_and_annotations_bounded(options: RecursionOptions) -> None:
    choice = random.Random(1)
    grid = Grid(options)
    lit = [*grid.seeds, *choice.sample(range(400), 110)]
    for number, sensor in enumerate(dict.fromkeys(lit)):
        grid.toggle(sensor)
        if number % 20 == 0:
            assert set(grid.operator.state_rows()) == grid.regions()
    view = grid.operator._partition.view
    encoding = grid.operator.encoding
    most = options.width * (32 if options.annotations == "bdd" else 30)
    for entry in view.entries.values():
        view._restrict_alternatives(entry)
        held = [part for part in (entry.sent, entry.buffered, *entry.received) if part is not None]
        assert all(encoding.size(part) <= most for part in held)
        if options.shipping is Shipping.WITNESS:
            parts = [part for part in (entry.sent, entry.buffered) if part is not None]
            assert all(len(part) == 1 for part in parts)
    for number, sensor in enumerate(choice.sample(sorted(grid.lit), 70)):
        grid.toggle(sensor)
        if number % 10 == 0:
            assert set(grid.operator.state_rows()) == grid.regions()
    assert set(grid.operator.state_rows()) == grid.regions()
