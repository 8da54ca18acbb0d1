"""What the requests for scripts must make of their first and of their second input."""

import configparser
import csv
import io
import re
from collections import Counter

from expected.reading import cents, once, plain_cents, table


def clean_contacts(files):
    people = {}
    for name, address, phone in table(files["contacts.csv"]):
        last, _, first = name.partition(", ")
        if not first:
            first, last = name.split(" ", 1)
        people.setdefault(address.strip().lower(), (last, first, phone))
    rows = [[first, last, address, phone] for address, (last, first, phone) in people.items()]
    rows.sort(key=lambda row: (row[1], row[0]))
    # Who shares a name is in either order: the rows are compared by the sorted columns, then as a set.
    return {"type": ["file"], "file": {"name": "clean.csv", "csv": {
        "columns": ["First", "Last", "Email", "Phone"], "expect": rows, "ordered": False, "sorted_by": [1, 0]}}}


def errors_per_hour(files):
    pattern = re.compile(rb'\[(\d\d)/Nov/2025:(\d\d):[^"]*"[^"]*" 5\d\d ')
    counts = Counter(f"2025-11-{day.decode()} {hour.decode()}:00" for day, hour in pattern.findall(files["access.log"]))
    return {"type": ["file"], "file": {"name": "errors.csv", "csv": {
        "columns": ["hour", "errors"], "expect": [[hour, counts[hour]] for hour in sorted(counts)], "ordered": True}}}


def shifted_subtitles(files):
    def earlier(clock):
        hours, minutes, seconds = clock.split(":")
        left = round(float(seconds.replace(",", ".")) * 1000) + 60000 * int(minutes) + 3600000 * int(hours) - 2500
        left = max(0, left)
        return f"{left // 3600000:02d}:{left // 60000 % 60:02d}:{left // 1000 % 60:02d},{left % 1000:03d}"

    lines = files["film.srt"].decode().splitlines()
    for number, line in enumerate(lines):
        if " --> " in line:
            lines[number] = " --> ".join(earlier(clock) for clock in line.split(" --> "))
    return {"type": ["file"], "file": {"name": "fixed.srt", "lines": lines}}


def orders_per_customer(files):
    customers = {}
    for day, _, _, amount, customer in once(table(files["orders.csv"])).values():
        entry = customers.setdefault(customer, {"orders": 0, "total": 0.0, "last_order": ""})
        entry["orders"] += 1
        entry["total"] = cents(entry["total"] + (amount or 0))
        entry["last_order"] = max(entry["last_order"], day.isoformat())
    return {"type": ["file"], "file": {"name": "customers.json", "json": {"expect": customers, "tolerance": 0.011}}}


def contents_of_notes(files):
    lines, seen, fence = [], Counter(), None
    for line in files["notes.md"].decode().splitlines():
        if line[:3] in ("```", "~~~"):
            fence = None if fence else line[:3]
            continue
        heading = re.match(r"(#+) (.*)", line)
        if fence or not heading:
            continue
        link = re.sub(r"[^\w\- ]", "", heading[2].lower()).replace(" ", "-")
        seen[link] += 1
        full = link if seen[link] == 1 else f"{link}-{seen[link] - 1}"
        if len(heading[1]) in (2, 3):
            lines.append("  " * (len(heading[1]) - 2) + f"- [{heading[2]}](#{full})")
    return {"type": ["text"], "text_lines": lines}


def trip_balances(files):
    spent = [(who, plain_cents(amount), sharing) for who, _, amount, sharing in table(files["trip.csv"])]
    named = {name for _, _, sharing in spent for name in sharing.split("; ")}
    everybody = sorted({who for who, _, _ in spent} | named - {"all"})
    paid, share = Counter(), Counter()
    for who, amount, sharing in spent:
        names = everybody if sharing == "all" else sharing.split("; ")
        paid[who] += amount
        for name in names:
            share[name] += amount / len(names)
    rows = [[name, cents(paid[name]), cents(share[name]), cents(paid[name] - share[name])] for name in everybody]
    return {"type": ["table"], "rows": {"expect": rows, "tolerance": 0.021}}


def wrong_ibans(files):
    lengths, rows = {"DE": 22, "AT": 20, "CH": 21}, []
    for number, line in enumerate(files["ibans.txt"].decode().splitlines(), 1):
        account = line.replace(" ", "").upper()
        if account and len(account) != lengths[account[:2]]:
            rows.append([number, account, "length"])
        elif account and int("".join(str(int(sign, 36)) for sign in account[4:] + account[:4])) % 97 != 1:
            rows.append([number, account, "checksum"])
    return {"type": ["table"], "rows": {"expect": rows}}


def settings_as_json(files):
    words = {"yes": True, "on": True, "true": True, "no": False, "off": False, "false": False}

    def typed(text):
        if text == "" or text.lower() in words:
            return words.get(text.lower())
        if re.fullmatch(r"-?\d+", text):
            return int(text)
        return float(text) if re.fullmatch(r"-?\d+\.\d+", text) else text

    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    parser.read_string(files["settings.ini"].decode())
    tree = {}
    for section in parser.sections():
        place = tree
        for part in section.split("."):
            place = place.setdefault(part, {})
        place.update({key: typed(value) for key, value in parser[section].items()})
    return {"type": ["file"], "file": {"name": "settings.json", "json": {"expect": tree, "tolerance": 1e-9}}}


def workbook_by_region(files):
    sheets = {region: {"orders": 0, "total": 0.0} for region in ("East", "North", "South", "West")}
    for _, region, _, amount, _ in once(table(files["orders.csv"])).values():
        sheets[region]["orders"] += 1
        sheets[region]["total"] = cents(sheets[region]["total"] + (amount or 0))
    return {"type": ["file"], "file": {"name": "by_region.xlsx", "sheets": sheets}}


def merged_quarter(files):
    rows = []
    for month, name in enumerate(("jan.csv", "feb.csv", "mar.csv"), 1):
        for row in csv.DictReader(io.StringIO(files[name].decode(), newline="")):
            count, price = int(row["Qty"]), float(row["Price"])
            rows.append([month, row["Item"], count, price, cents(count * price)])
    return {"type": ["file"], "file": {"name": "quarter.csv", "csv": {
        "columns": ["Month", "Item", "Qty", "Price", "Total"], "expect": rows, "ordered": True, "tolerance": 0.0051}}}
