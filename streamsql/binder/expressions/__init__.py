"""Expressions and function calls to typed expressions of the algebra."""
