"""Strategies to compare with: recompute, set execution, delete and rederive."""
