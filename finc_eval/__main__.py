"""`python -m finc_eval`: the same as the command `finc-eval`."""

from finc_eval.cli import main

if __name__ == "__main__":
    main()
