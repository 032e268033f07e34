"""Plans as data: frozen, typed expressions and relational operators, and their stable text."""
