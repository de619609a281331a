"""The audit: copies of training samples, membership attacks, and stated guarantees."""
