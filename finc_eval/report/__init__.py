"""Reports of a comparison that people read: one self-contained HTML file, and a fragment for notebooks."""
