"""Memory of the simulated world: people stay where they sit while sources change."""

import msgspec

from gateway.connectors.motes.world import Seat, World
from gateway.connectors.reading import Memory


class _Kept(msgspec.Struct):
    """See `World`.

    Attributes:
        seats: Machine, whether it is taken, weight, and until when it stays so.
    """

    seed: int
    seats: list[tuple[str, bool, float, int]]
    dark: list[tuple[str, bool]]
    heat: list[tuple[str, float]]


def remembered(world: World) -> Memory:
    """Return what to know of a world after a restart."""
    return {
        "seed": world.seed,
        "seats": [[mid, s.taken, s.weight, s.pinned_until] for mid, s in world.seats.items()],
        "dark": [[rid, dark] for rid, dark in world.dark_rooms.items()],
        "heat": [[rid, degrees] for rid, degrees in world.heat.items()],
    }


def recall(world: World, memory: Memory | None) -> None:
    """Let a world be as it was; one of another seed begins anew."""
    try:
        kept = msgspec.convert(memory, _Kept)
    except msgspec.ValidationError:
        return
    if kept.seed != world.seed:
        return
    world.seats = {mid: Seat(taken, weight, until) for mid, taken, weight, until in kept.seats}
    world.dark_rooms = dict(kept.dark)
    world.heat = dict(kept.heat)
