"""Explanations of results: supports of a row, effects of deleting base rows, probability of a row.

They work on a bound plan and the current base rows, in circuits of their own: the running query is
not touched.
"""
