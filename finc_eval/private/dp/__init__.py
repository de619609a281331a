"""Differential privacy: accounting, the Gaussian mechanism, the ledger of spent budget."""
