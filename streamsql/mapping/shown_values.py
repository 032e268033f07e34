"""A value of a payload in an error text: short whatever it is."""

_SHOWN = 40


def shown(value: object) -> str:
    """Return what a message says of a value; never longer than about 60 characters.

    Examples:
        >>> shown("OPEN"), shown([1, 2]), shown(10**5000)
        ("'OPEN'", 'an array', 'a number of 16610 bits')
    """
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return repr(value[:_SHOWN] + "…" if len(value) > _SHOWN else value)
    if isinstance(value, int):
        # A long number has no text: its conversion is refused or slow.
        bits = value.bit_length()
        return f"a number of {bits} bits" if bits > 128 else str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, dict):
        return f"an object with the fields {_names(value)}" if value else "an empty object"
    if isinstance(value, list | tuple):
        return "an array"
    return f"a value of type {type(value).__name__:.40}"


def _names(fields: dict[object, object]) -> str:
    names = [shown(name) for _, name in zip(range(4), fields, strict=False)]
    return ", ".join(names)[:_SHOWN] + ("…" if len(fields) > len(names) else "")
