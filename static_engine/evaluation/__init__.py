"""Evaluation of plans over stored tables: who evaluates, when, and what was found last."""
