"""Normalization: rewrites that are right whatever the placement, one rule a file.

`LOGICAL_RULES` run before joins are grouped by place, `WIDTH_RULES` after it.
"""

from federated_optimizer.rules.anti_joins import ANTI_JOINS
from federated_optimizer.rules.empty_relations import EMPTY_RELATIONS
from federated_optimizer.rules.fold_constants import FOLD_CONSTANTS
from federated_optimizer.rules.join_keys import JOIN_KEYS
from federated_optimizer.rules.merge_filters import MERGE_FILTERS
from federated_optimizer.rules.outer_to_inner import OUTER_TO_INNER
from federated_optimizer.rules.prune_columns import PRUNE_COLUMNS
from federated_optimizer.rules.push_filters import PUSH_FILTERS
from federated_optimizer.rules.rule import Rule, run_rules
from federated_optimizer.rules.self_joins import SELF_JOINS
from federated_optimizer.rules.transitive_predicates import TRANSITIVE_PREDICATES
from federated_optimizer.rules.trivial_projects import REMOVE_TRIVIAL_PROJECTS
from federated_optimizer.rules.unread_sides import UNREAD_SIDES

LOGICAL_RULES = (
    FOLD_CONSTANTS,
    MERGE_FILTERS,
    PUSH_FILTERS,
    JOIN_KEYS,
    OUTER_TO_INNER,
    ANTI_JOINS,
    UNREAD_SIDES,
    SELF_JOINS,
    TRANSITIVE_PREDICATES,
    EMPTY_RELATIONS,
    REMOVE_TRIVIAL_PROJECTS,
)
WIDTH_RULES = (PRUNE_COLUMNS, REMOVE_TRIVIAL_PROJECTS)

__all__ = ["LOGICAL_RULES", "UNREAD_SIDES", "WIDTH_RULES", "Rule", "run_rules"]
