"""Patterns of SIMILAR TO."""

from streamsql.algebra.regular_expressions.automaton import RegularExpressionError


def similar_pattern(pattern: str, escape: str = "\\") -> str:
    r"""Return the regular expression of a pattern of SIMILAR TO, which matches whole texts.

    Examples:
        >>> similar_pattern("r_%|s.")
        '^(?:r(?:.|\\n)(?:.|\\n)*|s\\.)$'

    Raises:
        RegularExpressionError: The pattern ends in its escape.
    """
    parts: list[str] = []
    characters = iter(pattern)
    inside = False
    for character in characters:
        if character == escape:
            taken = next(characters, "")
            if not taken:
                raise RegularExpressionError("the pattern ends in its escape")
            parts.append(taken if taken.isalnum() or not taken.isascii() else f"\\{taken}")
        elif inside:
            inside = character != "]"
            parts.append(character)
        elif character in "%_":
            parts.append("(?:.|\\n)*" if character == "%" else "(?:.|\\n)")
        elif character in "^$.\\":
            parts.append(f"\\{character}")
        else:
            inside = character == "["
            parts.append(character)
    return f"^(?:{''.join(parts)})$"
