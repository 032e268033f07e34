"""Options of wrappers: validated when the wrapper starts."""

from typing import TypeVar

import msgspec

from gateway.wrappers.wrapper import WrapperContext
from streamsql.errors import DeploymentError

T = TypeVar("T", bound=msgspec.Struct)


def read_options(context: WrapperContext, kind: str, struct: type[T]) -> T:
    """Return a wrapper's options.

    Raises:
        DeploymentError: One is missing, unknown or wrong; names it.
    """
    try:
        return msgspec.convert(dict(context.options), struct)
    except msgspec.ValidationError as error:
        raise DeploymentError(
            f"options of wrapper {kind}: {error}", hint="change them in the gateway's settings"
        ) from error
