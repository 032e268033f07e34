"""Scripts and the interactive shell without broker or services (`--local`)."""

from deploy.session.result import Result
from deploy.session.session import LocalSession

__all__ = ["LocalSession", "Result"]
