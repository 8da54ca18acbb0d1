"""The tables of the requests for data analysis and charts."""

import datetime

from synthetic.dice import Dice
from synthetic.writing import DAY, csv_text


def houses():
    """The README's example: sales of houses, nearly clean."""
    dice = Dice("houses")
    districts = {"Old Town": (18, 4150), "Harbour": (20, 3900), "Riverside": (32, 3400), "Hillcrest": (30, 3050),
                 "Northfield": (45, 2350), "Mill End": (35, 2100)}
    rows = [["id", "district", "type", "built", "rooms", "area_m2", "garden_m2", "price"]]
    for number in range(1, 181):
        district = dice.weighted({name: weight for name, (weight, _) in districts.items()})
        kind = dice.weighted({"terraced": 42, "semi-detached": 33, "detached": 25})
        rooms = dice.integer(3, 6) + (kind == "detached") * dice.integer(0, 2)
        area = round(rooms * dice.uniform(19, 27) + 8)
        built = dice.integer(1890, 1975) if dice.chance(0.55) else dice.integer(1976, 2022)
        no_garden = district == "Old Town" and dice.chance(0.5)
        garden = 0 if no_garden else round(dice.uniform(40, 180) * (1 + 2 * (kind == "detached")))
        age = 0.9 if built < 1950 and dice.chance(0.6) else 1.0
        price = area * districts[district][1] * age * dice.normal(1, 0.11) + garden * 160
        rows.append([number, district, kind, built, rooms, area if not dice.chance(0.02) else "",
                     garden if garden else "", round(price / 500) * 500])
    return csv_text(rows)


def hand_typed(dice, name):
    return dice.weighted({name: 70, name.lower(): 12, name + " ": 10, name.upper(): 5, " " + name: 3})


def two_dates(dice, day):
    return day.strftime("%Y-%m-%d") if dice.chance(0.55) else day.strftime("%d/%m/%Y")


def orders(seed, count):
    """A shop's export: a BOM, two date formats, thousands separators, regions typed by hand, orders twice."""
    dice = Dice(seed)
    prices = {"Furniture": (89, 1480), "Lighting": (19, 260), "Textiles": (9, 140), "Kitchen": (6, 320),
              "Garden": (12, 690)}
    customers = ["Abel & Sons", "Brightwater Hotel", "Café Lumen", "Dorn GmbH", "Elm Street School", "Foxglove Ltd",
                 "Granary Lofts", "Hartley, Ruth", "Ivy Cottage B&B", "Jansen BV", "Kiln Studio", "Lakeside Clinic"]
    rows = []
    day = datetime.date(2024, 12, 19)
    step = (datetime.date(2026, 1, 9) - day).days / count
    for number in range(count):
        when = day + DAY * int(number * step)
        category = dice.weighted({"Furniture": 20, "Lighting": 18, "Textiles": 24, "Kitchen": 26,
                                  "Garden": 12 + 14 * (3 < when.month < 8)})
        quantity, price = dice.integer(1, 12), round(dice.uniform(*prices[category]), 2)
        amount = f"{quantity * price:,.2f}" if not dice.chance(0.03) else ""
        region = dice.weighted({"North": 30, "South": 24, "East": 18, "West": 22})
        rows.append([f"A{10412 + number}", two_dates(dice, when), hand_typed(dice, region), category, quantity,
                     f"{price:,.2f}", amount, dice.pick(customers)])
        if dice.chance(0.025):
            rows.append(rows[-1])
    header = ["Order No", "Date", "Region", "Category", "Qty", "Unit price", "Amount", "Customer"]
    return "\ufeff" + csv_text([header] + rows)


def listings():
    """Flats to let: units in the cells, rents on request, sizes missing."""
    dice = Dice("listings")
    rent = {"Altstadt": 17.5, "Bahnhof": 13.2, "Hafen": 15.4, "Nordend": 14.1, "Weststadt": 11.6}
    rows = [["Listing", "District", "Rooms", "Size", "Rent (EUR)", "Available from"]]
    for number in range(1, 97):
        district = dice.pick(list(rent))
        rooms = dice.integer(1, 5)
        size = rooms * dice.uniform(20, 27) + 9
        euros = round(size * rent[district] * dice.normal(1, 0.1) / 10) * 10
        rows.append([f"W-{2200 + number * 3}", district, rooms, f"{size:.0f} m²" if not dice.chance(0.06) else "",
                     f"{euros:,}" if not dice.chance(0.08) else "on request",
                     (datetime.date(2025, 5, 1) + DAY * dice.integer(0, 120)).strftime("%d.%m.%Y")])
    return csv_text(rows)


def timesheet():
    """Shifts of March and the days around it: night shifts end after midnight, somebody forgets to clock out."""
    dice = Dice("timesheet")
    rows = [["Name", "Date", "Start", "End", "Break (min)"]]
    day = datetime.date(2025, 2, 24)
    while day < datetime.date(2025, 4, 5):
        for name in ("Amina", "Bruno", "Chiara", "Deniz", "Erik"):
            if dice.chance(0.36 if day.weekday() < 5 else 0.75):
                continue
            start, hours = dice.weighted({(6, 8): 40, (14, 8): 35, (22, 8): 25})
            begins = datetime.datetime.combine(day, datetime.time(start))
            begins += datetime.timedelta(minutes=dice.integer(-2, 3) * 5)
            ends = begins + datetime.timedelta(hours=hours, minutes=dice.integer(-3, 9) * 5)
            rest = dice.weighted({"30": 50, "45": 30, "": 12, "60": 8})
            rows.append([name, day.isoformat(), begins.strftime("%H:%M"),
                         ends.strftime("%H:%M") if not dice.chance(0.04) else "", rest])
        day += DAY
    return csv_text(rows)


def survey():
    """A form tool's export: two questions under one heading, comments with commas, quotes and line breaks."""
    dice = Dice("survey")
    remarks = ["", "", "", "", "Great service, thank you!", "Too expensive.", "The \"express\" delivery took nine days",
               "Friendly staff,\nbut the shop is hard to find", "ok", "Würde ich weiterempfehlen", "n/a"]
    rows = [["Timestamp", "Age group", "Score", "Score", "How did you hear about us?", "Comments"]]
    when = datetime.datetime(2025, 9, 1, 8, 12, 40)
    for _ in range(214):
        when += datetime.timedelta(minutes=dice.integer(3, 190), seconds=dice.integer(0, 59))
        satisfied = dice.weighted({"5": 34, "4": 38, "3": 16, "2": 7, "1": 5})
        recommend = min(10, max(0, round(int(satisfied) * 2.1 + dice.normal(-0.6, 1.4))))
        source = dice.weighted({"Friends": 30, "Search engine": 26, "Instagram": 19, "Walked past": 14, "Newspaper": 4,
                                "Radio": 3, "Flyer": 2, "": 2})
        age = dice.weighted({"18-29": 25, "30-44": 35, "45-59": 25, "60+": 15})
        rows.append([when.strftime("%Y/%m/%d %H:%M:%S"), age, satisfied if not dice.chance(0.05) else "",
                     recommend if not dice.chance(0.09) else "", source, dice.pick(remarks)])
    return csv_text(rows)


def bank():
    """A year's account statement; in July the bank changed dates and decimal signs."""
    dice = Dice("bank")
    kinds = {"Groceries": (18, 140, ["Supermarket", "Market hall", "Corner shop"]),
             "Eating out": (11, 75, ["Da Enzo", "Noodle bar", "Café Lumen"]), "Transport": (3, 60, ["Metro", "Rail"]),
             "Health": (8, 120, ["Pharmacy", "Dr. Osei"]), "Fun": (9, 95, ["Cinema", "Bookshop"])}
    entries = []
    for month in range(1, 13):
        entries.append((datetime.date(2025, month, 1), "Hausverwaltung Roth", "Rent", -1085.00))
        entries.append((datetime.date(2025, month, 27), "Norden Logistics", "Salary", 2740.50 + 400 * (month == 11)))
        entries.append((datetime.date(2025, month, 5), "City Power", "Utilities", -(96.40 if month < 8 else 104.15)))
        for _ in range(dice.integer(9, 15)):
            kind = dice.weighted({"Groceries": 45, "Eating out": 25, "Transport": 15, "Health": 5, "Fun": 10})
            low, high, payees = kinds[kind]
            entries.append((datetime.date(2025, month, dice.integer(1, 28)), dice.pick(payees), kind,
                            -round(dice.uniform(low, high), 2)))
    entries.append((datetime.date(2025, 8, 14), "Sea & Sun Travel", "Holiday", -1349.90))
    entries.append((datetime.date(2025, 4, 9), "Bike workshop", "Transport", -1012.75))
    entries.append((datetime.date(2025, 9, 18), "Da Enzo", "Eating out", 23.50))
    rows = [["Date", "Payee", "Category", "Amount"]]
    for day, payee, kind, amount in sorted(entries):
        if day.month < 7:
            written = f"{amount:,.2f}".translate(str.maketrans(",.", ".,"))
            rows.append([day.strftime("%d.%m.%Y"), payee, kind, written])
        else:
            rows.append([day.isoformat(), payee, kind, f"{amount:.2f}"])
    return csv_text(rows)


def sensors():
    """Two weeks of a logger's readings in the German manner: semicolons, decimal commas, a BOM, broken values."""
    dice = Dice("sensors")
    base = {"Keller": (14.2, 0.8), "Büro": (21.6, 2.4), "Dach": (9.5, 7.0)}
    rows = [["Zeit", "Sensor", "Temperatur", "Feuchte"]]
    for hour in range(14 * 24):
        when = datetime.datetime(2025, 10, 6) + datetime.timedelta(hours=hour)
        for name, (mean, swing) in base.items():
            if dice.chance(0.015):
                continue
            warm = -swing if not 7 < when.hour < 19 else swing
            value = f"{mean + warm * 0.5 + dice.normal(0, 0.6):.1f}".replace(".", ",")
            value = dice.weighted({value: 96, "999,9": 1, "-127,0": 1, "n/a": 1, "": 1})
            rows.append([when.strftime("%d.%m.%Y %H:%M"), name, value, f"{dice.normal(55, 6):.0f}"])
    return "\ufeff" + csv_text(rows, delimiter=";")


def stock_and_prices():
    """A stock list and a price list that lost the leading zeros of its article numbers."""
    dice = Dice("stock")
    articles = sorted({dice.integer(40, 9200) for _ in range(60)})
    stock = [["Warehouse", "Article", "On hand"]]
    for number in articles:
        for place in ("Bremen", "Linz", "Basel"):
            if dice.chance(0.55):
                stock.append([place, f"{number:05d}", dice.integer(0, 240) if not dice.chance(0.03) else ""])
    prices = [["Article", "Description", "Unit price"]]
    for number in dice.shuffled(articles):
        if dice.chance(0.91):
            goods = dice.pick(["Bolt", "Bracket", "Hinge", "Seal", "Valve", "Washer"])
            price = dice.uniform(1100, 2900) if dice.chance(0.06) else dice.uniform(0.2, 85)
            prices.append([number, f"{goods} {dice.pick(['M4', 'M6', 'M8', 'DN20', 'XL'])}", f"{price:,.2f}"])
    return csv_text(stock), csv_text(prices)


def study():
    """Hours of study and marks of four classes; absences are written into the mark."""
    dice = Dice("study")
    rows = [["Student", "Class", "Hours", "Mark"]]
    for number in range(1, 89):
        group = "ABCD"[number % 4]
        hours = max(0.5, dice.normal({"A": 14, "B": 11, "C": 12.5, "D": 9}[group], 4))
        mark = min(100, max(5, 52 + 0.9 * hours + dice.normal(0, 13)))
        rows.append([f"S{number:03d}", group, f"{hours:.1f}" if not dice.chance(0.05) else "",
                     f"{mark:.0f}" if not dice.chance(0.06) else "absent"])
    return csv_text(rows)


def energy():
    """Eight weeks of a smart meter: an hour a row, some rows missing, some values empty."""
    dice = Dice("energy")
    rows = [["timestamp", "kWh"]]
    for hour in range(56 * 24):
        when = datetime.datetime(2025, 1, 6) + datetime.timedelta(hours=hour)
        use = 0.28 + 0.5 * (6 < when.hour < 9) + 0.9 * (17 < when.hour < 22) + 0.3 * (when.weekday() > 4)
        if not dice.chance(0.012):
            value = f"{use * dice.uniform(0.7, 1.35):.3f}"
            rows.append([when.strftime("%Y-%m-%d %H:%M"), value if not dice.chance(0.01) else ""])
    return csv_text(rows)


def runs():
    """A runner's diary: kilometres and miles, minutes and hours."""
    dice = Dice("runs")
    rows = [["Date", "Distance", "Time", "Shoes"]]
    day = datetime.date(2025, 3, 2)
    for _ in range(46):
        day += DAY * dice.integer(1, 5)
        kilometres = round(dice.weighted({5.0: 3, 8.0: 3, 10.0: 3, 15.5: 1, 21.1: 1}) * dice.uniform(0.9, 1.1), 1)
        seconds = round(kilometres * dice.normal(5.6 + kilometres * 0.03, 0.3) * 60)
        distance = f"{kilometres} km" if not dice.chance(0.25) else f"{kilometres / 1.609344:.2f} mi"
        minutes, rest = divmod(seconds, 60)
        time = f"{minutes}:{rest:02d}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
        rows.append([day.isoformat(), distance, time if not dice.chance(0.05) else "", dice.pick(["Aero", "Trail"])])
    return csv_text(rows)


def calls():
    """Calls to a help desk: two date formats, calls outside opening hours too."""
    dice = Dice("calls")
    rows = [["Received", "Minutes", "Topic"]]
    day = datetime.date(2025, 6, 2)
    while day < datetime.date(2025, 6, 30):
        for _ in range(round(dice.normal(15, 4)) if day.weekday() < 5 else dice.integer(0, 4)):
            hour = dice.weighted({7: 1, 8: 5, 9: 12, 10: 14, 11: 11, 12: 5, 13: 7, 14: 9, 15: 8, 16: 6, 17: 3, 18: 1,
                                  20: 1})
            when = datetime.datetime.combine(day, datetime.time(hour, dice.integer(0, 59)))
            form = "%Y-%m-%d %H:%M" if dice.chance(0.7) else "%d/%m/%Y %H:%M"
            topic = dice.pick(["Login", "Invoice", "Delivery", "Other"])
            rows.append([when.strftime(form), dice.integer(1, 38), topic])
        day += DAY
    return csv_text(rows)
