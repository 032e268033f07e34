"""Random expressions without brackets: what binds tighter is decided by precedence alone.

Every method writes one level of PostgreSQL's table of precedence, from OR down to the sign, so that
the types fit as PostgreSQL reads them.
"""

from typing import Protocol

from tests.random_queries.scopes import Workshop, dual

COMPARED = ("INTEGER", "DOUBLE", "TEXT", "BOOLEAN", "TIMESTAMP")
TESTS = (
    "IS NULL", "IS NOT NULL", "IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE", "IS UNKNOWN",
    "IS NOT UNKNOWN", "ISNULL", "NOTNULL",
)  # fmt: skip
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
LISTS = {
    "INTEGER": "1, -1, 2",
    "DOUBLE": "0.5, 1.0",
    "TEXT": "'a', 'ab'",
    "BOOLEAN": "TRUE, NULL",
}


class Leaves(Protocol):
    """Makes the operands, which are names and constants."""

    shop: Workshop

    def leaf(self, kind: str) -> str:
        """Return a column or a constant of a type."""
        ...


class Unbracketed:
    """Chains of operators over leaves."""

    def __init__(self, leaves: Leaves) -> None:
        self.leaves = leaves
        self.random = leaves.shop.random

    def of(self, kind: str) -> str:
        """Return an expression of a type."""
        if kind == "BOOLEAN":
            return self.condition()
        return self._text() if kind == "TEXT" else self._sum(kind)

    def condition(self) -> str:
        """Return ANDs in ORs."""
        return " OR ".join(self._and() for _ in range(self.random.choice((1, 1, 2, 3))))

    def _and(self) -> str:
        return " AND ".join(self._not() for _ in range(self.random.choice((1, 2, 2))))

    def _not(self) -> str:
        return self.random.choice(("", "", "NOT ", "NOT NOT ")) + self._is()

    def _is(self) -> str:
        """Return comparisons behind which IS stands."""
        match self.random.randrange(6):
            case 0 | 1:
                return f"{self._compared()} {self.random.choice(TESTS)}"
            case 2:
                word = self.random.choice(("", "NOT "))
                return f"{self._compared()} IS {word}DISTINCT FROM {self._operand('BOOLEAN')}"
            case _:
                return self._compared()

    def _compared(self) -> str:
        """Return two operands between which a comparison stands, or which BETWEEN or IN follows."""
        random = self.random
        kind = random.choice(COMPARED)
        match random.randrange(7):
            case 0 if kind != "BOOLEAN":
                word = random.choice(("BETWEEN", "NOT BETWEEN", "BETWEEN SYMMETRIC"))
                return f"{self._operand(kind)} {word} {self._operand(kind)} AND " + (
                    self._operand(kind)
                )
            case 1 if kind in LISTS:
                word = random.choice(("IN", "NOT IN"))
                return f"{self._operand(kind)} {word} ({LISTS[kind]})"
            case 2:
                word = random.choice(("LIKE", "NOT LIKE", "ILIKE"))
                return f"{self._text()} {word} {random.choice(self.patterns)}"
            case 3:
                return f"{self._operand(kind)} = {self._member(kind)}"
            case 4:
                return self.leaves.leaf("BOOLEAN")
            case _:
                left, right = self._operand(kind), self._operand(kind)
                return f"{left} {random.choice(COMPARISONS)} {right}"

    patterns = ("'a%'", "'%b'", "'_' || '%'", "'%' || 'b'")

    def _member(self, kind: str) -> str:
        """Return what is compared with a value of the type: another, or a row of two."""
        if kind == "BOOLEAN":
            return f"({self._compared()})"
        return self._operand(kind)

    def _operand(self, kind: str) -> str:
        match kind:
            case "INTEGER" | "DOUBLE":
                return self._sum(kind)
            case "TEXT":
                return self._text()
            case "TIMESTAMP":
                span = dual("INTERVAL '1 s'", "1000000")
                sign = self.random.choice("+-")
                return self.leaves.leaf(kind) + self.random.choice(("", f" {sign} {span}"))
            case _:
                return self.leaves.leaf(kind)

    def _text(self) -> str:
        """Return texts that are joined; `||` binds weaker than `+`, so that these may be joined."""
        listed = [self.leaves.leaf("TEXT")]
        if self.random.random() < 0.5:
            tail = self._sum("INTEGER") if self.random.random() < 0.5 else self.leaves.leaf("TEXT")
            listed.append(tail)
        return " || ".join(listed)

    def _sum(self, kind: str) -> str:
        text = self._product(kind)
        for _ in range(self.random.choice((0, 1, 1, 2))):
            text += f" {self.random.choice('+-')} {self._product(kind)}"
        return text

    def _product(self, kind: str) -> str:
        text = self._signed(kind)
        signs = "*%" if kind == "INTEGER" else "*"
        for _ in range(self.random.choice((0, 0, 1, 2))):
            text += f" {self.random.choice(signs)} {self._signed(kind)}"
        return text

    def _signed(self, kind: str) -> str:
        return self.random.choice(("", "", "", "- ", "+ ")) + self.leaves.leaf(kind)
