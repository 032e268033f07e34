"""Sites of a bundle by what they do for it; looked up again and again while it runs."""

from dataclasses import dataclass

from federated_optimizer.cutting.placing import direct_scans
from streamsql.catalog.system import is_site_source
from streamsql.wire.fragments import Engine, FragmentBundle


@dataclass(frozen=True, slots=True)
class BundleSites:
    """Sites and sources of a bundle, as a status names them.

    Attributes:
        bundle: The one whose sites these are.
        engines: The gateways and base sites that run something of it.
        answering: Those whose rows belong to the answer, and those without which it is made.
        direct: The sources, in lower case, whose readings base sites read themselves.
    """

    bundle: FragmentBundle
    engines: frozenset[str]
    answering: frozenset[str]
    direct: frozenset[str]

    @classmethod
    def of(cls, bundle: FragmentBundle) -> "BundleSites":
        """Return the sites of a bundle."""
        fragments = bundle.fragments
        # The rows of stored tables stay when their engine goes: its last counts remain true.
        engines = (site for f in fragments if f.engine != Engine.STATIC for site in f.sites)
        fed = (site for fragment in fragments for site in fragment.sites)
        without = (site for plan in bundle.recursions for site in plan.without)
        direct = (name.lower() for name in direct_scans(bundle) if not is_site_source(name))
        told = (frozenset(engines), frozenset({*fed, *without}), frozenset(direct))
        return cls(bundle, *told)
