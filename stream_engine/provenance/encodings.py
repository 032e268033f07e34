"""The encodings of annotations by name."""

from typing import Any

from stream_engine.provenance.annotation import AnnotationEncoding
from streamsql.errors import QueryError


def encoding_named(name: str, *, width: int) -> AnnotationEncoding[Any]:
    """Return an encoding by name: "dnf" or "bdd".

    Args:
        name: Of the encoding.
        width: Most supports (dnf), or most nodes in units of 32 (bdd), of one annotation.

    Raises:
        QueryError: There is none of that name.
    """
    # Imported here because the BDD library has no wheel for every machine.
    if name == "dnf":
        from stream_engine.provenance.dnf import DnfEncoding  # noqa: PLC0415

        dnf: AnnotationEncoding[Any] = DnfEncoding(width)
        return dnf
    if name == "bdd":
        from stream_engine.provenance.bdd import BddEncoding  # noqa: PLC0415

        return BddEncoding(max_nodes=32 * width)
    raise QueryError(f"no annotation encoding {name!r:.40}", hint="write dnf or bdd")
