"""Scripts and the interactive shell without broker or services (`--local`)."""

from deploy.session.session import LocalSession
from deploy.session.session_results import Result

__all__ = ["LocalSession", "Result"]
