"""Differential privacy, and audits of it: private sketches, data generation, and what attacks can tell."""
