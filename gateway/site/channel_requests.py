"""Requests of a receiver to senders to discard what they need not repeat."""

from stream_engine.site.step_result import Forget
from streamsql.errors import WireError
from streamsql.wire.messages import Command

_VERSION, _WATERMARK = "version", "watermark"
_PORT = "port "


def forget_command(told: Forget, receiver: str) -> Command:
    """Return the command; see `forget_from`."""
    bounds = {f"{_PORT}{port}": bound for port, bound in told.bounds.items()}
    numbers = {_VERSION: told.version, _WATERMARK: told.watermark, **bounds}
    return Command(query=told.query, channel=receiver, arguments=dict(numbers))


def forget_from(command: Command, *, me: str) -> Forget:
    """Return what a command says.

    Raises:
        WireError: Something in it is no number.
    """
    numbers: dict[str, int] = {}
    for name, value in command.arguments.items():
        if not isinstance(value, int) or isinstance(value, bool):
            raise WireError(f"command forget: {name!r:.40} is not a whole number")
        numbers[name] = value
    if _VERSION not in numbers or _WATERMARK not in numbers:
        raise WireError("command forget: version or watermark is missing")
    bounds = {n.removeprefix(_PORT): v for n, v in numbers.items() if n.startswith(_PORT)}
    return Forget(command.query, me, numbers[_VERSION], numbers[_WATERMARK], bounds)
