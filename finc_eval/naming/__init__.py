"""Names of kinds and directions: properties that members have more often than other samples, each with its evidence."""
