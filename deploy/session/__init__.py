"""Scripts and the interactive shell without broker or services (`--local`)."""

from deploy.session.results import Result
from deploy.session.session import LocalSession

__all__ = ["LocalSession", "Result"]
