"""Find out that a step is over at all sites: channel counting (Mattern 1987, section 5).

Every idle member reports how many items it has sent to and worked on from every other. Once the
last reports of all members agree for every channel, they describe a consistent cut: no item is
under way, and since an idle member becomes active only by an item, none ever will be.
"""


class ChannelCounts:
    """The items of a generation that this site has sent and worked on, and the members' reports.

    Args:
        members: Indexes of all members, in the same order everywhere.
        own: Index of this site.
    """

    def __init__(self, members: tuple[int, ...], own: int) -> None:
        self._members = members
        self._own = own
        self._sent = dict.fromkeys(members, 0)
        self._worked = dict.fromkeys(members, 0)
        self._reports: dict[int, tuple[int, ...]] = {}
        self._told: tuple[int, ...] = ()

    def sent(self, to: int) -> None:
        """Count an item that was sent."""
        self._sent[to] += 1

    def worked(self, sender: int) -> None:
        """Count an item that was worked on."""
        self._worked[sender] += 1

    def begin_step(self) -> None:
        """Forget the reports: they are of the last step."""
        self._reports = {}
        self._told = ()

    def news(self) -> tuple[int, ...] | None:
        """Return this site's report, per member sent and worked on; None if it was told already."""
        report = tuple(
            count
            for member in self._members
            for count in (self._sent[member], self._worked[member])
        )
        if report == self._told:
            return None
        self._told = self._reports[self._own] = report
        return report

    def note(self, member: int, report: tuple[int, ...]) -> None:
        """Take a member's report in."""
        if member in self._sent and len(report) == 2 * len(self._members):
            self._reports[member] = report

    def is_over(self) -> bool:
        """Whether all members were idle and nothing was under way."""
        reports = [self._reports.get(member) for member in self._members]
        return all(
            mine is not None and theirs is not None and mine[2 * b] == theirs[2 * a + 1]
            for a, mine in enumerate(reports)
            for b, theirs in enumerate(reports)
        )
