"""The encodings of annotations by name."""

from collections.abc import Callable
from typing import Any

from stream_engine.provenance.annotation import AnnotationEncoding, TracksDerivedRows
from stream_engine.provenance.dnf import DnfEncoding
from streamsql.data.types import Row
from streamsql.errors import DeploymentError, QueryError


def encoding_named(name: str, *, width: int) -> AnnotationEncoding[Any]:
    """Return the encoding "dnf", "bdd" or "relative".

    Args:
        name: Of the encoding.
        width: Max supports (dnf), or max nodes (bdd) or edges (relative) in units of 32, of one
            annotation.

    Raises:
        QueryError: There is none of that name.
        DeploymentError: Its library is not installed.
    """
    if name == "dnf":
        dnf: AnnotationEncoding[Any] = DnfEncoding(width)
        return dnf
    if name == "bdd":
        return _bdd(width)
    if name == "relative":
        return _relative(width)
    raise QueryError(f"no annotation encoding {name!r:.40}", hint="write dnf or bdd, or relative")


def derivation_hook(encoding: AnnotationEncoding[Any]) -> Callable[[Row, Any], Any] | None:
    """Return an encoding's function of a newly derived row and its conjunction, or None."""
    return encoding.derived if isinstance(encoding, TracksDerivedRows) else None


def _relative(width: int) -> AnnotationEncoding[Any]:
    # A baseline: imported when a query names it.
    from stream_engine.provenance.relative import RelativeEncoding

    relative: AnnotationEncoding[Any] = RelativeEncoding(max_edges=32 * width)
    return relative


def _bdd(width: int) -> AnnotationEncoding[Any]:
    # Imported here because the library has no wheel for every machine.
    try:
        from stream_engine.provenance.bdd import BddEncoding
    except ImportError as error:
        raise DeploymentError(
            f"BDD annotations need the package biodivine-aeon: {error}",
            hint="install it, or choose the dnf encoding, which needs no extra package",
        ) from error
    bdd: AnnotationEncoding[Any] = BddEncoding(max_nodes=32 * width)
    return bdd
