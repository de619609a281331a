"""Pages that people read: of a comparison, a sweep and a table of models; and a fragment for notebooks."""
