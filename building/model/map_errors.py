"""Errors about a site's input files."""

from streamsql.errors import DeploymentError


class SiteError(DeploymentError):
    """A building map or link trace cannot be used; the message names the feature or line."""

    code = "site_error"
