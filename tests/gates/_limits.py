"""Limits of a verdict, by their rule."""


def by_name(verdict, rule):
    return [limit for limit in verdict.limits if limit.rule == rule]
