"""Writes the attached files of the requests: examples/houses.csv, bench/data/ and bench/data/second/.

    python3 bench/agent/make_data.py            writes them
    python3 bench/agent/make_data.py --check    says which differ, exit 1 if any does

All of it is made up here, by seeded chance, with the dirt that real exports have: a BOM, two date formats in a column,
thousands separators, decimal commas, missing values, names typed by hand, orders exported twice, headings used twice.
The files in second/ have the same form and other contents: programs written for the first are run on them.
"""

import pathlib
import sys

from synthetic import inputs, tables

ROOT = pathlib.Path(__file__).resolve().parents[2]


def all_files():
    """{path below the repository: text}"""
    stock, prices = tables.stock_and_prices()
    data = {"listings.csv": tables.listings(), "timesheet.csv": tables.timesheet(), "survey.csv": tables.survey(),
            "bank.csv": tables.bank(), "sensors.csv": tables.sensors(), "stock.csv": stock, "prices.csv": prices,
            "study.csv": tables.study(), "energy.csv": tables.energy(), "runs.csv": tables.runs(),
            "calls.csv": tables.calls(), "orders.csv": tables.orders("orders", 420),
            "contacts.csv": inputs.contacts("contacts", 48), "access.log": inputs.access_log("log", 620),
            "film.srt": inputs.subtitles("film", 40), "ibans.txt": inputs.ibans("ibans", 60),
            "trip.csv": inputs.expenses("trip", ["Ana", "Ben", "Chloé", "Dov", "Eve"], 28),
            "notes.md": inputs.NOTES, "settings.ini": inputs.SETTINGS, **inputs.month_sales("sales")}
    second = {"orders.csv": tables.orders("more orders", 90), "contacts.csv": inputs.contacts("more contacts", 17),
              "access.log": inputs.access_log("another log", 160), "film.srt": inputs.subtitles("another film", 12),
              "ibans.txt": inputs.ibans("more ibans", 25),
              "trip.csv": inputs.expenses("another trip", ["Mia", "Noah", "Olu"], 11),
              "notes.md": inputs.MORE_NOTES, "settings.ini": inputs.MORE_SETTINGS, **inputs.month_sales("more sales")}
    return {"examples/houses.csv": tables.houses(), **{f"bench/data/{name}": text for name, text in data.items()},
            **{f"bench/data/second/{name}": text for name, text in second.items()}}


def main(arguments):
    if arguments not in ([], ["--check"]):
        sys.exit(__doc__)
    differing = []
    for name, text in all_files().items():
        path, content = ROOT / name, text.encode()
        if arguments:
            if not path.is_file() or path.read_bytes() != content:
                differing.append(name)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    if differing:
        sys.exit("differ from what make_data.py writes: " + ", ".join(differing))


if __name__ == "__main__":
    main(sys.argv[1:])
