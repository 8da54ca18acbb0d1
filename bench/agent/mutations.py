"""Checks made wrong on purpose: each expected number, word, row and rule of a check altered, one at a time.

A result that satisfies a check must not satisfy any of its mutations, else that part of the check sees nothing. A
number moves by a tenth, one and twice its tolerance; a longer list is sampled.
"""

import copy
import functools

from cells import is_number

SAMPLES = 12
# Parts of a rule that say how to compare; the rest is what must be found.
SETTINGS = {"tolerance", "ordered", "trim_zeros", "share", "sorted_by", "picture"}


def leaves(node, path=()):
    """The paths of all expected values."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key not in SETTINGS:
                yield from leaves(value, path + (key,))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from leaves(value, path + (index,))
    else:
        yield path


def altered(value, tolerance):
    if isinstance(value, bool):
        return not value
    if is_number(value):
        return value + abs(value) / 10 + 1 + 2 * tolerance
    return "something else" if value is None else value + "x"


def sampled(paths):
    step = max(1, len(paths) // SAMPLES)
    return paths[::step]


def with_value(tree, path, change):
    tree = copy.deepcopy(tree)
    place = tree
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = change(place[path[-1]])
    return tree


def tolerance_at(check, path):
    """The tolerance of the innermost rule around a path."""
    found, place = 0.01, check
    for key in path:
        if isinstance(place, dict):
            found = place.get("tolerance", found)
        place = place[key]
    return found


def alternatives(check):
    """The checks that a check with alternatives consists of."""
    series = check.get("series")
    if isinstance(series, dict):
        return [check | {"series": choice} for choice in series["any_of"]]
    return [check]


def of_values(check):
    """One value altered; without the picture, which is slow to decode and not what is altered."""
    rules = {name: rule for name, rule in check.items() if name not in ("type", "picture")}
    for path in sampled(list(leaves(rules))):
        changed = with_value(rules, path, functools.partial(altered, tolerance=tolerance_at(rules, path)))
        yield f"{'.'.join(map(str, path))} is altered", changed | {"type": check["type"]}


def of_rows(check):
    """One row more than there is."""
    for path in (("rows", "expect"), ("file", "csv", "expect")):
        place = check
        for key in path:
            place = place.get(key, {})
        if place:
            yield "a row is wanted twice", with_value(check, path, lambda rows: rows + rows[-1:])


def of(check):
    """[(what was altered, the altered check)], for a check without alternatives or each of its alternatives at once."""
    found = [("the type is another", check | {"type": ["none"]})]
    choices = alternatives(check)
    if len(choices) == 1:
        return found + list(of_values(check)) + list(of_rows(check))
    # All alternatives are wrong at once: one altered value in each.
    firsts = [sampled(list(leaves(choice["series"])))[-1] for choice in choices]
    change = functools.partial(altered, tolerance=0.01)
    broken = [with_value(choice["series"], path, change) for choice, path in zip(choices, firsts)]
    wrong = {"type": check["type"], "series": {"any_of": broken}}
    return found + [("a value of each alternative is altered", wrong)]
