"""Refusals of rules."""


class NotSharedError(Exception):
    """A plan is not answered from an offer; the text says why."""
