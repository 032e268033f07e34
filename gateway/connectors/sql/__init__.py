"""The connector sql: new rows of tables and queries, by a column that grows.

`sql_options` what an endpoint and a source may say; `watermark` how far a source was read;
`database` what is asked of the database; `sql_connector` polls. Needs the extra `sql`, and the
driver of the database (`postgres`).
"""
