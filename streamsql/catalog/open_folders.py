"""Folders whose files statements may name."""

import posixpath

import msgspec


class OpenFolders(msgspec.Struct, frozen=True):
    """Folders that are open and closed, as absolute paths; the innermost one around a file decides.

    Paths are compared as texts. Who opens a file gives its real path, with links followed.

    Attributes:
        base: Where relative paths start; it is open.
        opened: Further ones that are open.
        closed: Those that are not, though they may be within one that is.
    """

    base: str
    opened: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()

    def place(self, path: str) -> str:
        """Return a path as an absolute one, without `..`."""
        return posixpath.normpath(posixpath.join(self.base, path))

    def allow(self, place: str) -> bool:
        """Whether a file at an absolute path may be named.

        Examples:
            >>> folders = OpenFolders("/d/site/tables", opened=("/srv/me",), closed=("/d",))
            >>> folders.allow("/d/site/tables/a.csv"), folders.allow("/d/run/console.json")
            (True, False)
            >>> folders.allow("/srv/me/b.csv"), folders.allow("/srv/mean.csv")
            (True, False)
        """
        around = [
            (len(folder), is_open)
            for folders, is_open in (((self.base, *self.opened), True), (self.closed, False))
            for folder in map(posixpath.normpath, folders)
            if place == folder or place.startswith(folder.rstrip("/") + "/")
        ]
        # Of one that is named twice, the closed one counts.
        return max(around, key=lambda found: (found[0], not found[1]), default=(0, False))[1]

    @property
    def shown(self) -> str:
        """The open folders, for errors."""
        return ", ".join(dict.fromkeys((self.base, *self.opened)))
