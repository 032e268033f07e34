"""The floor plan's script: drawn once per site in a process of its own, then kept on disk."""

import asyncio
import hashlib
import logging
import sys
from pathlib import Path

from streamsql.errors import DeploymentError

log = logging.getLogger(__name__)

SECONDS = 60.0
_SOURCES = ("render.py", "openings.py")


class PlanDrawing:
    """Makes the script for a site file, or finds the one made before.

    Args:
        site_file: The map.
        folder: Where scripts are kept; made when missing.
    """

    def __init__(self, site_file: Path, folder: Path) -> None:
        self._site_file = site_file
        self._folder = folder
        self._task: asyncio.Task[Path] | None = None

    async def script(self) -> Path:
        """Return the file that holds the script; all who ask meanwhile wait for one drawing.

        Raises:
            DeploymentError: It cannot be drawn; says why.
        """
        if self._task is None or (self._task.done() and not _succeeded(self._task)):
            self._task = asyncio.create_task(self._draw())
        return await asyncio.shield(self._task)

    async def close(self) -> None:
        """Stop drawing."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _draw(self) -> Path:
        try:
            out = self._folder / f"{self._digest()}.js"
            if out.is_file():
                return out
            self._folder.mkdir(parents=True, exist_ok=True)
            for old in self._folder.glob("*.js"):
                old.unlink()
        except OSError as error:
            raise DeploymentError(f"cannot prepare the map: {error}") from error
        command = (sys.executable, "-m", "ui.map.render", str(self._site_file), str(out))
        process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
        try:
            _, said = await asyncio.wait_for(process.communicate(), SECONDS)
        except TimeoutError:
            raise DeploymentError(f"the map was not drawn within {SECONDS:.0f} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0 or not out.is_file():
            reason = said.decode(errors="replace").strip().rsplit("\n", 1)[-1]
            raise DeploymentError(f"cannot draw the map: {reason:.500}")
        return out

    def _digest(self) -> str:
        """Return a digest of what the drawing depends on."""
        digest = hashlib.sha256(self._site_file.read_bytes())
        for name in _SOURCES:
            digest.update((Path(__file__).parent / name).read_bytes())
        return digest.hexdigest()[:32]


def _succeeded(task: asyncio.Task[Path]) -> bool:
    return not task.cancelled() and task.exception() is None
