"""What the requests for data analysis must give."""

import math
import statistics
from collections import defaultdict

from expected.reading import (bank_entries, cents, paid_in, plain, ranked, readings, students, summed, table)


def revenue_per_region(files):
    totals = summed((region, amount) for _, region, _, amount in paid_in(2025, files))
    return {"type": ["table"], "rows": {"expect": ranked(totals), "ordered": True, "tolerance": 0.011}}


def revenue_per_month(files):
    totals = summed((day.isoformat()[:7], amount) for day, _, _, amount in paid_in(2025, files))
    rows = [[month, cents(totals[month])] for month in sorted(totals)]
    return {"type": ["table"], "rows": {"expect": rows, "ordered": True, "tolerance": 0.011}}


def rent_per_metre(files):
    flats = defaultdict(list)
    for _, district, _, size, rent, _ in table(files["listings.csv"]):
        if size and rent != "on request":
            flats[district].append(plain(rent) / float(size.split()[0]))
    rows = [[district, round(statistics.fmean(rents), 4), len(rents)] for district, rents in flats.items()]
    rows.sort(key=lambda row: row[1])
    return {"type": ["table"], "rows": {"expect": rows, "ordered": True, "tolerance": 0.051}}


def hours_in_march(files):
    def minutes(clock):
        hours, rest = clock.split(":")
        return int(hours) * 60 + int(rest)

    worked = defaultdict(int)
    for name, day, start, end, rest in table(files["timesheet.csv"]):
        if end and day.startswith("2025-03-"):
            worked[name] += (minutes(end) - minutes(start)) % 1440 - int(rest or 0)
    rows = [[name, round(total / 60, 4)] for name, total in sorted(worked.items())]
    return {"type": ["table"], "rows": {"expect": rows, "tolerance": 0.051}}


def survey_scores(files):
    rows = table(files["survey.csv"])
    satisfied = [int(row[2]) for row in rows if row[2]]
    recommend = [int(row[3]) for row in rows if row[3]]
    promoters, detractors = sum(score >= 9 for score in recommend), sum(score <= 6 for score in recommend)
    expected = {"average satisfaction": round(statistics.fmean(satisfied), 4),
                "NPS": round(100 * (promoters - detractors) / len(recommend), 4),
                "answers on satisfaction": len(satisfied), "answers on recommending": len(recommend)}
    return {"type": ["table", "text"], "numbers": {"expect": expected, "tolerance": 0.051}}


def spending(files):
    totals = summed((category, -amount) for _, category, amount in bank_entries(files["bank.csv"]) if amount < 0)
    return {"type": ["table"], "rows": {"expect": ranked(totals), "ordered": True, "tolerance": 0.011}}


def temperatures(files):
    values = defaultdict(list)
    for _, sensor, degrees in readings(files["sensors.csv"]):
        values[sensor].append(degrees)
    rows = [[sensor, min(found), round(statistics.fmean(found), 4), max(found)] for sensor, found in values.items()]
    return {"type": ["table"], "rows": {"expect": rows, "tolerance": 0.051}}


def stock_value(files):
    prices = {number.zfill(5): plain(price) for number, _, price in table(files["prices.csv"])}
    stock = table(files["stock.csv"])
    totals = summed((place, int(count or 0) * prices.get(article, 0)) for place, article, count in stock)
    missing = sorted({article for _, article, _ in stock} - set(prices))
    return {"type": ["table"], "rows": {"expect": ranked(totals), "tolerance": 0.011}, "mentions": missing}


def two_sided_p(r, count):
    """Student's t for a correlation, by Simpson's rule over the density."""
    freedom = count - 2
    limit = abs(r) * math.sqrt(freedom / (1 - r * r))
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    steps = 2000
    heights = [scale * (1 + (limit * step / steps) ** 2 / freedom) ** (-(freedom + 1) / 2) for step in range(steps + 1)]
    inner = (heights[0] + heights[-1] + 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2])) * limit / steps / 3
    return 1 - 2 * inner


def study_correlation(files):
    pairs = [(hours, mark) for _, hours, mark in students(files["study.csv"]) if hours is not None and mark is not None]
    r = statistics.correlation([hours for hours, _ in pairs], [mark for _, mark in pairs])
    expected = {"r": round(r, 5), "p": round(two_sided_p(r, len(pairs)), 5), "students": len(pairs)}
    return {"type": ["table", "text"], "numbers": {"expect": expected, "tolerance": 0.00051}}


def savings(_):
    rows, balance = [], 0.0
    for month in range(1, 241):
        balance = balance * (1 + 0.031 / 12) + 250
        if month % 60 == 0:
            rows.append([month // 12, cents(balance), cents(balance - 250 * month)])
    return {"type": ["table"], "rows": {"expect": rows, "ordered": True, "tolerance": 0.51}}
