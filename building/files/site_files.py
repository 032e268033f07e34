"""Write the files of a site, each as a whole and only if it differs."""

from pathlib import Path

from building.model.site_model import SiteError
from host.files.atomic_file import PUBLIC, replace_file


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
        replace_file(path, content, mode=mode)
    except OSError as error:
        raise SiteError(
            f"cannot write {path}: {error.strerror or error}",
            hint="check the folder's permissions and the free space, or choose another --data",
        ) from error
