"""One generator judged by everything that its sets allow, as one result and one page."""
