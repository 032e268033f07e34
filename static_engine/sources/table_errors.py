"""Errors of stored tables."""

from streamsql.errors import DeploymentError


class TableError(DeploymentError):
    """A stored table cannot be read as it was declared; the text says what, where and why."""

    code = "table_error"


class TableMissingError(TableError):
    """The file, folder or database table is not there."""

    code = "table_missing"
