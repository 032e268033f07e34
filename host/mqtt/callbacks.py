"""Call what readers registered, so that one reader's defect does not stop the others."""

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeVar

_Argument = TypeVar("_Argument")


def call_each(
    callbacks: Iterable[Callable[[_Argument], None]], argument: _Argument, client_id: str
) -> None:
    """Call every callback on the running loop; what one raises goes to the loop's handler."""
    for callback in callbacks:
        try:
            callback(argument)
        except Exception as error:  # noqa: BLE001 - reported, and the next one is called
            context = {
                "message": f"a callback of broker client {client_id!r} failed",
                "exception": error,
            }
            asyncio.get_running_loop().call_exception_handler(context)
