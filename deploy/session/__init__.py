"""Scripts and the interactive shell without broker or services (`--local`)."""

from deploy.session.session import LocalSession, Result

__all__ = ["LocalSession", "Result"]
