"""The demo: real digits with planted differences, through the path that a user's own folders take."""
