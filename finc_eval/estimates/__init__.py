"""Numbers from samples, with the influence of each independent unit: what intervals, ranks and gates stand on."""
