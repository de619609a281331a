"""Evidence of looks at a training: when a thing changed, which samples are copies, and what is local in pictures."""
