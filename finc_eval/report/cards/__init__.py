"""Cards of modes and kinds: what all pages show of a mode or kind, whatever its result."""
