"""Foundations that know no domain: errors, files written whole, signatures, progress, devices."""
