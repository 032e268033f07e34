# PostgreSQL with Pando's databases and roles, made on the first start of an empty volume.
FROM postgres:15-bookworm

COPY deploy/postgres/init.sql /docker-entrypoint-initdb.d/10-pando.sql
EXPOSE 5432
