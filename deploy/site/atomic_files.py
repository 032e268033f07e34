"""Write files so that a reader sees the old content or the new, never a part."""

import os
import tempfile
from pathlib import Path

from deploy.site.errors import SiteError

PUBLIC = 0o644
PRIVATE = 0o600


def write_atomically(path: Path, content: bytes, mode: int = PUBLIC) -> None:
    """Write a file by renaming; a file that has this content already is left untouched.

    Leaving it untouched spares its readers, who watch modification times, a refresh.

    Args:
        path: The file.
        content: All of it.
        mode: Who may read it, also if it is there already.

    Raises:
        SiteError: The folder or the file cannot be written.
    """
    try:
        if path.is_file() and path.read_bytes() == content:
            path.chmod(mode)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, content, mode)
    except OSError as error:
        raise SiteError(
            f"cannot write {path}: {error.strerror or error}",
            hint="check the folder's permissions and the free space, or choose another --data",
        ) from error


def _replace(path: Path, content: bytes, mode: int) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(mode)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
