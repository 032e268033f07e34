"""Accounts for the console that commands ask."""

from tests.ui.sign_in.conftest import ask, nobody_yet, office, staffed

__all__ = ["ask", "nobody_yet", "office", "staffed"]
