"""The epoch of a service: a number that grows with every start, kept in a file.

One rule for all services: a start never reuses an epoch and never fails over the file that holds
the last one. A file that cannot be understood is set aside as `epoch.broken`, and the epoch is
derived from the clock, above all that counting could have reached.
"""

import errno
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

from host.files.atomic_file import replace_file
from streamsql.errors import DeploymentError
from streamsql.wire.bounds import MAX_EPOCH

log = logging.getLogger(__name__)

_FULL = (errno.ENOSPC, errno.EDQUOT)
_MAX_BYTES = 40
_PER_SECOND = 4096
"""Epochs between two clock-derived ones of neighbouring seconds: more starts than fit a second."""


def next_epoch(file: Path, above: int = 0, clock: Callable[[], float] = time.time) -> int:
    """Return a number larger than at any earlier start, and remember it on disk.

    On a full disk the file is overwritten in place; if that fails too, the number is used but not
    remembered, which is logged.

    Args:
        file: Where the last one is.
        above: Be larger than this too.
        clock: Seconds since 1970.

    Raises:
        DeploymentError: It cannot be read or written, or all epochs are used up.
    """
    try:
        last = _last_epoch(file)
        if last is None:
            last = _clock_epoch(clock())
            file.replace(file.with_name(file.name + ".broken"))
            log.warning(
                "%s holds no epoch (set aside as %s.broken): this start uses %d, which is "
                "derived from the clock and greater than all earlier ones",
                file,
                file.name,
                max(last, above) + 1,
            )
        epoch = max(last, above) + 1
        if epoch >= MAX_EPOCH:
            raise DeploymentError(
                f"all epochs of {file} are used up: the last one is {epoch - 1}",
                hint="remove the site from the federation, delete this file and start again",
            )
        _remember(file, epoch)
    except OSError as error:
        raise DeploymentError(
            f"cannot save the epoch in {file}: {error.strerror}",
            hint="make the file and its folder writable for this process",
        ) from error
    return epoch


def _last_epoch(file: Path) -> int | None:
    """Return the epoch in a file: 0 when there is no file, None when it is damaged."""
    try:
        with file.open("rb") as old:
            content = old.read(_MAX_BYTES + 1).strip()
    except FileNotFoundError:
        return 0
    if not content.isdigit() or len(content) > _MAX_BYTES or int(content) >= MAX_EPOCH:
        return None
    return int(content)


def _clock_epoch(seconds: float) -> int:
    """Return an epoch above all that were counted up to now.

    Tokens of recursions hold an epoch modulo 4096 and compare it by half of the circle: from its
    middle every epoch that was counted from 1 lies behind, not ahead.
    """
    return int(seconds) * _PER_SECOND + _PER_SECOND // 2


def _remember(file: Path, epoch: int) -> None:
    content = b"%d\n" % epoch
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, content)
    except OSError as error:
        if error.errno not in _FULL:
            raise
        try:
            _overwrite(file, content.rjust(_MAX_BYTES))
        except OSError as full:
            log.warning("cannot save epoch %d in %s: %s", epoch, file, full.strerror)


def _overwrite(file: Path, content: bytes) -> None:
    """Write into the block that a file has already: no other one need be free."""
    with file.open("r+b") as output:
        output.write(content)
        output.flush()
        os.fsync(output.fileno())
