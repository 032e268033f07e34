"""Rights of running queries are looked at by group, and groups are made only after a change."""

from typing import Any

from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from federated_optimizer.coordinator.contract.people_model import Account
from federated_optimizer.coordinator.contract.principal import Principal, Role
from federated_optimizer.coordinator.grants.maker_groups import MakerGroups
from federated_optimizer.coordinator.store.grant_store import MadeKind, Maker

ROOMS = "SELECT rid, status FROM RoomSensor"
SEATS = "SELECT mid FROM SeatSensor"
ANN, BEN = Principal("ann", Role.OPERATOR), Principal("ben", Role.OPERATOR)
MANY = 12


def test_equal_queries_of_a_maker_are_one_group_and_are_gone_through_once(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        people = {p.name: Account(p.name, p.role) for p in (ANN, BEN)}
        coordinator.follow_accounts(people.get)
        for who in (ANN, BEN):
            for _ in range(MANY):
                await coordinator.on_behalf(who).execute(ROOMS)
        await coordinator.on_behalf(ANN).execute(SEATS)
        groups = MakerGroups(coordinator._queries, coordinator._shared.rights)
        assert sorted(map(len, groups.all())) == [1, MANY, MANY]
        looked_at = groups.looked_at
        assert looked_at == 2 * MANY + 1
        for _ in range(5):
            groups.all()
        assert groups.looked_at == looked_at, "nothing has changed"

        del people["ann"]
        coordinator._grants.check_running()
        status = [query.status for query in coordinator.queries()]
        assert status.count(QueryStatus.FAILED) == MANY + 1, "all of hers, and none of his"
        assert [len(group) for group in groups.all()] == [MANY]
        await coordinator.on_behalf(BEN).execute(SEATS)
        assert sorted(map(len, groups.all())) == [1, MANY], "a new one is seen"

    harness.run(scenario)


def test_an_account_that_only_has_the_name_of_a_former_one_keeps_its_own_queries(
    harness: Any,
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        people = {ANN.name: Account(ANN.name, ANN.role)}
        coordinator.follow_accounts(people.get)
        rights = coordinator._shared.rights
        for number in range(2):
            await coordinator.on_behalf(ANN).execute(ROOMS)
            rights.made((MadeKind.QUERY, f"q{number + 1}"), Maker(ANN.name, 100 * number))
        people[ANN.name] = Account(ANN.name, ANN.role, created=50)
        coordinator._grants.check_running()
        coordinator._grants.check_running()
        former, present = coordinator.queries()
        assert former.status == QueryStatus.FAILED
        assert present.status != QueryStatus.FAILED

    harness.run(scenario)
