"""Write the table of intervals in docs/promises.md again: python tests/intervals/write_page.py."""

import re

from test_printed_intervals import PAGE, rows_of_page

if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    before, table, after = re.split(r"((?:^\| `[A-Z]\w+\.\w+` .*\n)+)", text, maxsplit=1, flags=re.MULTILINE)
    PAGE.write_text(before + "\n".join(rows_of_page()) + "\n" + after, encoding="utf-8")
