"""Extractor cards: one TOML file each, data and no code (installed as `finc_eval.extractors.cards`)."""
