-- Databases and roles of a Pando federation. The postgres image runs this once, on an empty volume,
-- as its superuser; the passwords come from the container's environment (psql 14+ has \getenv).
--
--   pando_catalog   definitions and running queries; used by the coordinator alone
--   pando_tables    stored tables that statements may join; the static engine only reads them

\set ON_ERROR_STOP on
\getenv catalog_password PANDO_CATALOG_PASSWORD
\getenv tables_password PANDO_TABLES_PASSWORD
\getenv reader_password PANDO_READER_PASSWORD

CREATE ROLE pando_catalog LOGIN PASSWORD :'catalog_password';
CREATE ROLE pando_tables LOGIN PASSWORD :'tables_password';
CREATE ROLE pando_reader LOGIN PASSWORD :'reader_password';
ALTER ROLE pando_reader SET default_transaction_read_only = on;

CREATE DATABASE pando_catalog OWNER pando_catalog;
CREATE DATABASE pando_tables OWNER pando_tables;
REVOKE ALL ON DATABASE pando_catalog FROM PUBLIC;
REVOKE ALL ON DATABASE pando_tables FROM PUBLIC;
GRANT CONNECT ON DATABASE pando_tables TO pando_reader;

\connect pando_tables
ALTER SCHEMA public OWNER TO pando_tables;
GRANT USAGE ON SCHEMA public TO pando_reader;
-- Tables that the owner makes later are readable without another grant.
ALTER DEFAULT PRIVILEGES FOR ROLE pando_tables IN SCHEMA public
  GRANT SELECT ON TABLES TO pando_reader;
