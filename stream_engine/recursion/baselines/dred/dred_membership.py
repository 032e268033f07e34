"""Which sites take part in a distributed delete-and-rederive, and which of them leads."""


class Membership:
    """What a site believes of the others.

    A site is lost while no later life of it has joined than the last one declared dead. The first
    site in order that is not known to be lost leads; one that was not heard of yet is waited for.

    Args:
        sites: All sites, in the same order everywhere.
    """

    def __init__(self, site: str, sites: tuple[str, ...], life: int) -> None:
        self._site = site
        self._sites = sites
        self._life = life
        self._joined: dict[str, int] = {}
        self._dead: dict[str, int] = {}

    def joined(self, site: str, life: int) -> None:
        """Note that a site has begun a life."""
        self._joined[site] = max(life, self._joined.get(site, life))

    def lost(self, site: str, life: int) -> None:
        """Note that this life of a site and all earlier ones are over."""
        if site != self._site:
            self._dead[site] = max(life, self._dead.get(site, life))

    def leader(self) -> str:
        """Return the leading site."""
        for site in self._sites:
            if site == self._site or not self._is_lost(site):
                return site
        return self._site

    def members(self) -> dict[str, int]:
        """Return the sites that are there, with their lives, in order."""
        return {
            site: self._life if site == self._site else self._joined[site]
            for site in self._sites
            if site == self._site or (site in self._joined and not self._is_lost(site))
        }

    def is_alive(self, site: str, life: int) -> bool:
        """Whether a life of a site is the present one as far as known."""
        return self.members().get(site) == life

    def is_over(self, site: str, life: int) -> bool:
        """Whether a life of a site is known to be over."""
        return life <= self._dead.get(site, -1) or life < self._joined.get(site, -1)

    def _is_lost(self, site: str) -> bool:
        dead = self._dead.get(site)
        return dead is not None and self._joined.get(site, dead) <= dead
