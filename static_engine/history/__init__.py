"""The past as queries read it: rows of the lake, their versions and their bounds."""
