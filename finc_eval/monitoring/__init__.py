"""A monitor for training: which kinds die and which looks drift, with alarms that hold at every evaluation."""
