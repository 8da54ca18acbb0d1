"""What the demo's requests and the tasks of tool-calling mode must give."""

import datetime
import statistics
from collections import defaultdict

from expected.reading import once, table


def price_per_metre(files):
    houses = defaultdict(list)
    for _, district, _, _, _, area, _, price in table(files["houses.csv"]):
        if area:
            houses[district].append(int(price) / int(area))
    rows = [[district, round(statistics.fmean(prices)), len(prices)] for district, prices in houses.items()]
    rows.sort(key=lambda row: -row[1])
    return {"type": ["table"], "rows": {"expect": rows, "ordered": True, "tolerance": 0.51}}


def telling_measure(files):
    petals = defaultdict(list)
    for row in table(files["iris.csv"]):
        petals[row[4]].append(float(row[2]))
    means = {species: round(statistics.fmean(lengths), 4) for species, lengths in petals.items()}
    return {"type": ["text"], "mentions": ["petal length"], "numbers": {"expect": means, "tolerance": 0.0051}}


def districts_as_json(files):
    prices = defaultdict(list)
    for row in table(files["houses.csv"]):
        prices[row[1]].append(int(row[7]))
    entries = {name: {"houses": len(found), "median": statistics.median(found)} for name, found in prices.items()}
    return {"type": ["file"], "file": {"name": "districts.json", "json": {"expect": entries}}}


def said(**rules):
    """The check of tool-calling mode, whose result is a text."""
    return {"type": ["text"], **rules}


def fridays(_):
    days = [datetime.date(year, month, 13) for year in range(2020, 2031) for month in range(1, 13)]
    days = [day for day in days if day.strftime("%w") == "5"]
    gap = max((later - earlier).days for earlier, later in zip(days, days[1:]))
    return said(numbers={"expect": {"Fridays": len(days), "longest gap": gap}})


def fiftieth_prime(_):
    sieve = list(range(2, 1000))
    for _ in range(49):
        sieve = [number for number in sieve if number % sieve[0]]
    return said(numbers={"expect": {"prime": sieve[0]}})


def quiet_customers(files):
    last = {}
    for day, _, _, _, customer in once(table(files["orders.csv"])).values():
        last[customer] = max(last.get(customer, day), day)
    three = sorted(last.items(), key=lambda pair: pair[1])[:3]
    return said(mentions=[name for name, _ in three] + [day.isoformat() for _, day in three])


def solved(matrix):
    """The solution of a linear system, its right side the last column, by elimination."""
    for at in range(len(matrix)):
        pivot = max(range(at, len(matrix)), key=lambda row: abs(matrix[row][at]))
        matrix[at], matrix[pivot] = matrix[pivot], matrix[at]
        matrix[at] = [value / matrix[at][at] for value in matrix[at]]
        for row in range(len(matrix)):
            if row != at:
                factor = matrix[row][at]
                matrix[row] = [value - factor * other for value, other in zip(matrix[row], matrix[at])]
    return [row[-1] for row in matrix]


def worth_of_a_garden(files):
    rows = [row for row in table(files["houses.csv"]) if row[5]]
    names = sorted({row[1] for row in rows})
    design = [[float(row[6] or 0)] + [float(row[1] == name) for name in names]
              + [float(row[5]) * (row[1] == name) for name in names] for row in rows]
    width = len(design[0])
    system = [[sum(line[left] * line[right] for line in design) for right in range(width)]
              + [sum(line[left] * float(row[7]) for line, row in zip(design, rows))] for left in range(width)]
    return said(numbers={"expect": {"per square metre": round(solved(system)[0], 2), "houses": len(rows)},
                         "tolerance": 0.51})
