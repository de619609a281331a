"""Parts of verbs, such as `compare sweep`: one module each, imported when the part is called."""
