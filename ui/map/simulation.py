"""What can be done in the simulated building, and at which gateway."""

from dataclasses import dataclass

from streamsql.data.types import Value
from streamsql.errors import DeploymentError
from ui.map.site_map import SiteMap

ACTIONS = {
    "sit": "seat",
    "leave": "seat",
    "lights_on": "light",
    "lights_off": "light",
    "heat": "temperature",
}
"""Action to the kind of sensor that notices it."""
MAX_CELSIUS = 100.0


@dataclass(frozen=True, slots=True)
class Order:
    """A command for one gateway."""

    gateway: str
    arguments: dict[str, Value]
    message: str


def order(site: SiteMap, action: str, target: str, celsius: float = 10.0) -> Order:
    """Return the command that makes something happen.

    Args:
        site: What there is.
        action: One of `ACTIONS`.
        target: A machine for sit and leave, else a room.
        celsius: With heat: degrees to add, of either sign.

    Raises:
        DeploymentError: Action or target is unknown, or nothing senses it.
    """
    kind = ACTIONS.get(action)
    if kind is None:
        raise DeploymentError(
            f"unknown action {action!r:.60}", hint=f"use {', '.join(sorted(ACTIONS))}"
        )
    if not -MAX_CELSIUS <= celsius <= MAX_CELSIUS:
        raise DeploymentError(
            f"{celsius} degrees are out of range", hint="use a value from -100 to 100"
        )
    places = site.machines if kind == "seat" else site.rooms
    noun = "machine" if kind == "seat" else "room"
    gateway = places.get(target)
    if target not in places:
        raise DeploymentError(f"there is no {noun} {target!r:.80}", hint=f"{action} takes a {noun}")
    if gateway is None or (kind, target) not in site.sensed:
        raise DeploymentError(f"{noun} {target} has no {kind} sensor")
    arguments: dict[str, Value] = {"action": action, "mid" if kind == "seat" else "rid": target}
    if action == "heat":
        arguments["celsius"] = celsius
    return Order(gateway, arguments, f"{action.replace('_', ' ')}: {target} ({gateway})")
