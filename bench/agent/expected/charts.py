"""What the requests for charts must show."""

import statistics
from collections import Counter, defaultdict

from expected.reading import (bank_entries, cents, day_of, paid_in, ranked, readings, students, summed, table)


def chart(**rules):
    return {"type": ["chart"], "picture": {}, **rules}


def house_prices(files):
    bands = Counter(int(row[7]) // 50000 for row in table(files["houses.csv"]) if row[7])
    counts = [bands[band] for band in range(min(bands), max(bands) + 1)]
    return chart(series=[{"values": counts, "trim_zeros": True}])


def revenue_per_category(files):
    quarter = [(category, amount) for day, _, category, amount in paid_in(2025, files) if 4 <= day.month <= 6]
    rows = ranked(summed(quarter))
    return chart(series=[{"labels": [row[0] for row in rows], "values": [row[1] for row in rows], "tolerance": 0.51}])


def energy_per_day(files):
    totals = summed((moment[:10], float(use)) for moment, use in table(files["energy.csv"]) if use)
    days = sorted(totals)
    daily = [round(totals[day], 4) for day in days]
    average = [round(statistics.fmean(daily[end - 7:end]), 4) for end in range(7, len(daily) + 1)]
    return chart(series=[{"values": daily, "tolerance": 0.0051}, {"values": average, "tolerance": 0.0051}])


def run_paces(files):
    points = []
    for _, distance, clock, _ in table(files["runs.csv"]):
        if clock:
            amount, unit = distance.split()
            kilometres = float(amount) * (1.609344 if unit == "mi" else 1)
            seconds = 0
            for part in clock.split(":"):
                seconds = seconds * 60 + int(part)
            points.append([round(kilometres, 4), round(seconds / 60 / kilometres, 4)])
    return chart(points={"expect": points, "tolerance": 0.0051})


def daily_temperatures(files):
    days = defaultdict(list)
    for moment, sensor, degrees in readings(files["sensors.csv"]):
        days[sensor, moment.date()].append(degrees)
    lines = defaultdict(list)
    for sensor, day in sorted(days):
        lines[sensor].append(round(statistics.fmean(days[sensor, day]), 4))
    return chart(series=[{"name": sensor, "values": values, "tolerance": 0.0051} for sensor, values in lines.items()])


def heard_about_us(files):
    counts = Counter(row[4] for row in table(files["survey.csv"]) if row[4])
    limit = 0.05 * sum(counts.values())
    kept = {source: count for source, count in counts.items() if count >= limit}
    kept["Other"] = sum(counts.values()) - sum(kept.values())
    return chart(series=[{"labels": list(kept), "values": list(kept.values()), "share": True, "ordered": False,
                          "tolerance": 0.6}])


def marks_per_class(files):
    marks = defaultdict(list)
    for group, _, mark in students(files["study.csv"]):
        if mark is not None:
            marks[group].append(mark)
    groups = sorted(marks)
    medians = [{"labels": groups, "values": [statistics.median(marks[group]) for group in groups]}]
    whole = [{"name": group, "values": marks[group], "ordered": False} for group in groups]
    return chart(series={"any_of": [medians, whole]})


def month_end_balances(files):
    balance, ends = 1250.0, [0.0] * 12
    for day, _, amount in sorted(bank_entries(files["bank.csv"])):
        balance += amount
        ends[day.month - 1] = cents(balance)
    return chart(series=[{"values": ends, "tolerance": 0.011}])


def calls_per_hour(files):
    counts = Counter()
    for moment, _, _ in table(files["calls.csv"]):
        day, clock = moment.split()
        counts[day_of(day).weekday(), int(clock[:2])] += 1
    return chart(matrix={"expect": [[counts[weekday, hour] for hour in range(8, 18)] for weekday in range(5)]})


def members(_):
    counts = [212, 240, 251, 198, 187, 223, 262, 270]
    changes = [round(100 * (now - before) / before, 1) for before, now in zip(counts, counts[1:])]
    return chart(series=[{"labels": list(range(2017, 2025)), "values": counts},
                         {"values": changes, "tolerance": 0.051}])
