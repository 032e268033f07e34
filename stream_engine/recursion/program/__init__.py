"""What a recursion computes: rules, leaves, item tables, options, and who owns which row."""
