"""Every verb of the command line by its name, and its options, from the command line's own list."""

from finc_eval.cli.app import PARTS, VERBS, load_verb


def commands(command, name):
    """Yield the verbs of a command, each with its name."""
    parts = getattr(command, "commands", None)
    if parts is None:
        yield name, command
    for part, one in (parts or {}).items():
        yield from commands(one, f"{name} {part}")


def every_verb():
    for name in [name for verbs in VERBS.values() for name in verbs]:
        for part in (None, *PARTS.get(name, ())):
            yield from commands(load_verb(name, part), name if part is None else f"{name} {part}")


VERBS_BY_NAME = dict(every_verb())


def options_of(command):
    return [one for one in command.params if one.param_type_name == "option"]
