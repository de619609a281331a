"""Two trainings side by side: in which followed things they differ, and since when."""
