"""Findings: what is said of the difference of two sets, by one name, in all outputs of all verbs."""
