"""The plain files that services read about a building, and its drawing."""
