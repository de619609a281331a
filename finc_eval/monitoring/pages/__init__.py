"""Pages of trainings: of one that a monitor follows, and of two side by side."""
