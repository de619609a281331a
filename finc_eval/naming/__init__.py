"""Names of modes: properties that members have more often than other samples, each with its evidence."""
