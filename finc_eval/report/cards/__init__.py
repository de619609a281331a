"""Cards of modes and kinds: what all pages show of one, whatever result it is of."""
