"""Rules that answer a plan over the rows of an offer, one rule a file.

Each has `answer(wanted, offered, leaf) -> Plan | None`: a plan over `leaf`, which gives the rows of
`offered`, with the schema of `wanted` and exactly its rows; None: the rule finds none.
"""
