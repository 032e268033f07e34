"""Explanations of results: what a row rests on, what breaks without a base row, how sure a row is.

Everything here works on a bound plan and the base rows of the moment, in circuits of its own: the
running query is not touched.
"""
