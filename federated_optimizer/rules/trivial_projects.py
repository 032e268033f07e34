"""Remove projections that change nothing and merge a projection that stands on a projection.

Precondition: none; runs after pruning, which leaves such projections behind.

Sound because a projection keeps duplicates: composing two row functions gives the same bag. Names
are kept, so the schema is. An inner expression that costs something is put in only where it is
read once, so nothing is computed twice.

Example: `Project a` over `Project x + 1 AS a, b` becomes `Project x + 1 AS a`.
"""

from collections import Counter

from federated_optimizer.rules.rule import Rule
from streamsql.algebra.expressions import Call, Column, Expression, substituted, walk
from streamsql.algebra.operators import Plan, Project, transform_up


def remove_trivial_projects(plan: Plan) -> Plan:
    """Return the plan without projections that do nothing."""
    return transform_up(plan, _simplify)


def _simplify(plan: Plan) -> Plan:
    if not isinstance(plan, Project):
        return plan
    child = plan.input
    if isinstance(child, Project) and _cheap_to_merge(plan, child):
        merged = [substituted(e, child.expressions) for e in plan.expressions]
        if None not in merged:
            expressions = tuple(e for e in merged if e is not None)
            return _simplify(Project(child.input, expressions, plan.names))
    return child if is_identity(plan) else plan


def is_identity(project: Project) -> bool:
    """Whether a projection returns its input with the same names."""
    if project.schema != project.input.schema:
        return False
    return all(isinstance(e, Column) and e.position == i for i, e in enumerate(project.expressions))


def _cheap_to_merge(outer: Project, inner: Project) -> bool:
    uses: Counter[int] = Counter()
    for expression in outer.expressions:
        uses.update(_positions(expression))
    return all(
        not isinstance(expression, Call) or uses[position] <= 1
        for position, expression in enumerate(inner.expressions)
    )


def _positions(expression: Expression) -> list[int]:
    return [part.position for part in walk(expression) if isinstance(part, Column)]


REMOVE_TRIVIAL_PROJECTS = Rule("remove_trivial_projects", remove_trivial_projects)
