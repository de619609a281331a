"""The verbs of `finc-eval`, one module each; `finc_eval.cli.app` imports a verb when it is called."""
