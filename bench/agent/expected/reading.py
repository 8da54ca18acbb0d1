"""The attached files as the reference reads them, each kind of dirt undone in one place."""

import csv
import datetime
import io
from collections import defaultdict


def table(data, **form):
    """The rows below the header, as lists."""
    return [row for row in csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), **form) if row][1:]


def plain(text):
    """'1,234.50' as a number."""
    return float(text.replace(",", ""))


def plain_cents(text):
    """'76,43' or '76.43' as a number."""
    return float(text.replace(",", "."))


def day_of(text):
    if "/" in text:
        day, month, year = text.split("/")
        return datetime.date(int(year), int(month), int(day))
    return datetime.date.fromisoformat(text)


def cents(number):
    return round(number + 0.0, 2)


def once(rows):
    """Orders without their repetitions: {number: (day, region, category, amount or None, customer)}."""
    return {number: (day_of(day), region.strip().capitalize(), category, plain(amount) if amount else None, customer)
            for number, day, region, category, _, _, amount, customer in rows}


def paid_in(year, files):
    """(day, region, category, amount) of the year's orders that have an amount."""
    sold = once(table(files["orders.csv"])).values()
    return [(day, region, category, amount) for day, region, category, amount, _ in sold
            if amount is not None and day.year == year]


def summed(pairs):
    totals = defaultdict(float)
    for key, value in pairs:
        totals[key] += value
    return dict(totals)


def ranked(totals):
    return [[key, cents(value)] for key, value in sorted(totals.items(), key=lambda pair: -pair[1])]


def bank_entries(data):
    """(day, category, amount) of both halves of the year."""
    for day, _, category, amount in table(data):
        if "." in day:
            day = "-".join(reversed(day.split(".")))
            amount = amount.replace(".", "").replace(",", ".")
        yield datetime.date.fromisoformat(day), category, float(amount)


def readings(data):
    """(moment, sensor, degrees) without what is broken or missing."""
    for moment, sensor, degrees, _ in table(data, delimiter=";"):
        if degrees not in ("", "n/a") and -40 <= float(degrees.replace(",", ".")) <= 60:
            yield datetime.datetime.strptime(moment, "%d.%m.%Y %H:%M"), sensor, float(degrees.replace(",", "."))


def students(data):
    for _, group, hours, mark in table(data):
        yield group, float(hours) if hours else None, int(mark) if mark != "absent" else None
