"""Errors of the lake."""

from pyiceberg.exceptions import ValidationError

from streamsql.errors import DeploymentError


class LakeError(DeploymentError):
    """The lake cannot do what was asked; nothing has changed in it."""

    code = "lake_error"


class NotKeptError(LakeError):
    """A source has no readings in the lake."""

    code = "not_kept"


class LakeBusyError(LakeError):
    """Others change a table all the time; it may be tried again."""

    code = "lake_busy"


DAMAGE = (LakeError, ValidationError, ValueError, TypeError, LookupError, FileNotFoundError)
"""Raised where one table is damaged or cannot be made; what passes by itself raises others."""
