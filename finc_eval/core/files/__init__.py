"""The one way in which each kind of file is written and opened: what is damaged or forged is one sentence."""
