"""INSERT and DELETE on stored tables: their files, changed as a whole or not at all."""
