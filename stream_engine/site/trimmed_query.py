"""A query of a site goes on trimmed: it sends and receives as before, and computes no result.

No row is sent again, because channels stay as they are, and who reads what is received notices
nothing. Readers of the result keep the rows that they have, and wait.
"""

from typing import TYPE_CHECKING

from stream_engine.sharing.slots import slots_of
from streamsql.wire.bundles.trimmed_bundles import goes_on_trimmed
from streamsql.wire.fragments import FragmentBundle

if TYPE_CHECKING:
    from stream_engine.site.installed_query import InstalledQuery


def may_go_on(query: "InstalledQuery", bundle: FragmentBundle) -> bool:
    """Return whether a query that runs may go on as a bundle; else that is installed anew."""
    if not goes_on_trimmed(query.bundle, bundle) or query.waiting is not None:
        return False  # what waits between operators would be lost
    circuits = query.parts[0]
    left = {name: circuit for name, circuit in circuits.items() if not _is_kept(name, bundle)}
    if len(left) in {0, len(circuits)}:
        return True
    # Synopses are let go for a query as a whole, and some of its fragments would go on with them.
    return next(slots_of(bundle.query, left), None) is None


def keeps_circuits(query: "InstalledQuery", bundle: FragmentBundle) -> bool:
    """Return whether some fragments of a query go on here."""
    return any(_is_kept(name, bundle) for name in query.parts[0])


def _is_kept(name: str, bundle: FragmentBundle) -> bool:
    return any(fragment.id == name and fragment.consumer for fragment in bundle.fragments)
