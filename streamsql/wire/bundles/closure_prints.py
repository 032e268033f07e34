"""Names of what a fragment and all below it compute, the same in any bundle."""

from hashlib import sha256

from streamsql.algebra.operators import Plan, RemoteSource, transform_up
from streamsql.errors import InternalError
from streamsql.wire.codec import encode_packed
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle


def closure_print(bundle: FragmentBundle, fragment_id: str) -> str:
    """Return a name of what a fragment computes; the same for the same computation.

    Two prints are equal if both fragments have equal plans at the same sites over fragments of
    equal prints, and send their rows to the same sites. A result, and what one base site keeps for
    itself, are not sent. Ids, and what is told to people alone, do not count.

    Raises:
        KeyError: The bundle has no such fragment, or one below reads a fragment that it lacks.
        InternalError: Fragments read each other in a circle.
    """
    return _Prints(bundle).of(fragment_id)


def closure_prints(bundle: FragmentBundle) -> dict[str, str]:
    """Return the closure prints of all fragments of a bundle, by id.

    Raises:
        KeyError: A fragment reads one that the bundle lacks.
        InternalError: Fragments read each other in a circle.
    """
    prints = _Prints(bundle)
    return {fragment.id: prints.of(fragment.id) for fragment in bundle.fragments}


def is_kept(fragment: Fragment) -> bool:
    """Return whether the rows of a fragment stay where they are computed.

    So it is with the result of a bundle, and with a copy of it in another bundle, which reads it.
    """
    if not fragment.consumer:
        return True
    # At several sites an empty partition sends every row to all of them.
    stays = fragment.destinations == fragment.sites and len(fragment.sites) == 1
    return fragment.engine == Engine.BASE and stays and not fragment.partition


class _Prints:
    """The prints of the fragments of one bundle, each computed once."""

    def __init__(self, bundle: FragmentBundle) -> None:
        self._bundle = bundle
        self._known: dict[str, str] = {}
        self._open: set[str] = set()

    def of(self, fragment_id: str) -> str:
        known = self._known.get(fragment_id)
        if known is not None:
            return known
        if fragment_id in self._open:
            raise InternalError(f"fragment {fragment_id} reads itself")
        self._open.add(fragment_id)
        fragment = self._bundle.fragment(fragment_id)
        plan = transform_up(fragment.plan, self._named)
        goes = None if is_kept(fragment) else (fragment.destinations, fragment.partition)
        said = (plan, fragment.sites, fragment.homes, goes)
        found = self._known[fragment_id] = sha256(encode_packed(said)).hexdigest()
        self._open.remove(fragment_id)
        return found

    def _named(self, plan: Plan) -> Plan:
        """Return a leaf with the print of the fragment that it reads in place of its id."""
        if isinstance(plan, RemoteSource):
            return RemoteSource(self.of(plan.fragment), plan.columns)
        return plan
