"""One generator judged by everything, as one result."""
