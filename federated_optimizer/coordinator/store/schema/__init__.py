"""Tables of the catalog; `catalog_schema` makes and alters them."""
