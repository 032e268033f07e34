"""Costs: how large relations are, how often they change, and what sending them costs.

`relations` has sizes and motion, `sent_columns` their bytes; `cost` is a price with its range,
`shipments` that of rows between sites, `work` that of operators, `stored_reads` that of stored
tables, `recursion_prices` that of a recursion by the way it is computed. `weighing` applies a
metric. `fragment_estimates` says what each fragment of a bundle sends, `handed_rows` what it is
asked for by readers, `run_costs` what its run costs; `effort` compares such prices.
"""
