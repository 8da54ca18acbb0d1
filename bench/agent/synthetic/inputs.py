"""The inputs of the requests for scripts: an address book, a log, subtitles, notes, settings and the like."""

import datetime

from synthetic.dice import Dice
from synthetic.writing import csv_text


def contacts(seed, count):
    """An address book: BOM, names in two orders, addresses in any case, people entered twice."""
    dice = Dice(seed)
    first = ["Ana", "Ben", "Chloé", "David", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Kofi", "Lena",
             "Mateo", "Nora"]
    last = ["Abbott", "Berg", "Costa", "Dietz", "Evans", "Fischer", "Garcia", "Haas", "Ito", "Jensen", "Kaya", "Lund",
            "Müller", "O'Neil"]
    people = []
    for _ in range(count):
        given, family = dice.pick(first), dice.pick(last)
        plain = f"{given}.{family}".lower().translate(str.maketrans({"é": "e", "ü": "ue", "'": ""}))
        address = f"{plain}@{dice.pick(['example.org', 'example.com', 'example.net'])}"
        people.append((given, family, address))
        if dice.chance(0.18):
            people.append(dice.pick(people))
    rows = [["Name", "E-Mail", "Phone"]]
    for given, family, address in people:
        name = f"{given} {family}" if dice.chance(0.6) else f"{family}, {given}"
        address = dice.weighted({address: 60, address.upper(): 15, f" {address}": 15, address.title(): 10})
        phone = f"+44 1632 96{dice.integer(0, 9999):04d}" if not dice.chance(0.2) else ""
        rows.append([name, address, phone])
    return "\ufeff" + csv_text(rows)


def access_log(seed, count):
    """A web server's log, with lines that are no requests."""
    dice = Dice(seed)
    lines = []
    when = datetime.datetime(2025, 11, 3, 5, 58, 11)
    for _ in range(count):
        when += datetime.timedelta(seconds=dice.integer(1, 210))
        usual, outage = {200: 72, 304: 9, 404: 8, 301: 4, 500: 4, 502: 2, 503: 2}, {200: 40, 503: 30, 500: 6}
        status = dice.weighted(outage if when.hour == 9 else usual)
        path = dice.pick(["/", "/shop", "/shop/cart", "/api/v1/items?page=500", "/static/app.js", "/about"])
        method = dice.weighted({"GET": 8, "POST": 2})
        lines.append(f'203.0.113.{dice.integer(1, 254)} - - [{when.strftime("%d/%b/%Y:%H:%M:%S")} +0000] '
                     f'"{method} {path} HTTP/1.1" {status} {dice.integer(120, 48211)} "-" "Mozilla/5.0"')
        if dice.chance(0.006):
            lines.append(f"[{when.strftime('%a %b %d %H:%M:%S %Y')}] [notice] worker 500 restarted")
    return "\n".join(lines) + "\n"


def subtitles(seed, count):
    """A subtitle file with CRLF line ends, some lines in two rows, the first ones close to zero."""
    dice = Dice(seed)
    said = ["Where were you last night?", "I told you,\nI was at the harbour.", "<i>Nobody goes there after ten.</i>",
            "Listen...", "- Did you hear that?\n- It is 00:00:02,500 already.", "No.", "We should leave."]

    def clock(milliseconds):
        seconds, rest = divmod(milliseconds, 1000)
        return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d},{rest:03d}"

    blocks, at = [], 900
    for number in range(1, count + 1):
        length = dice.integer(900, 4200)
        blocks.append(f"{number}\n{clock(at)} --> {clock(at + length)}\n{dice.pick(said)}\n")
        at += length + dice.integer(80, 62000)
    return "\n".join(blocks).replace("\n", "\r\n")


def expenses(seed, people, count):
    """What friends paid on a trip, for all or for some; amounts with a decimal comma here and there."""
    dice = Dice(seed)
    rows = [["Who paid", "What", "Amount", "For"]]
    for _ in range(count):
        amount = f"{dice.uniform(4, 180):.2f}"
        sharing = "all" if dice.chance(0.6) else "; ".join(sorted(dice.shuffled(people)[:dice.integer(2, 3)]))
        rows.append([dice.pick(people), dice.pick(["Dinner", "Petrol", "Tickets", "Groceries", "Boat", "Parking"]),
                     amount if dice.chance(0.7) else amount.replace(".", ","), sharing])
    return csv_text(rows)


def iban(country, account):
    digits = "".join(str(int(letter, 36)) for letter in account + country + "00")
    return f"{country}{98 - int(digits) % 97:02d}{account}"


def ibans(seed, count):
    """Account numbers, spaced or not, some with two digits swapped, a digit wrong or one missing."""
    dice = Dice(seed)
    lines = []
    for _ in range(count):
        country, length = dice.pick([("DE", 18), ("AT", 16), ("CH", 17)])
        number = iban(country, "".join(str(dice.integer(0, 9)) for _ in range(length)))
        place = dice.integer(6, len(number) - 3)
        fault = dice.weighted({"none": 72, "swap": 10, "digit": 10, "short": 8})
        if fault == "swap" and number[place] != number[place + 1]:
            number = number[:place] + number[place + 1] + number[place] + number[place + 2:]
        elif fault == "digit":
            number = number[:place] + str((int(number[place]) + 3) % 10) + number[place + 1:]
        elif fault == "short":
            number = number[:-1]
        spaced = " ".join(number[at:at + 4] for at in range(0, len(number), 4))
        lines.append(dice.weighted({number: 5, spaced: 4, spaced.lower(): 1}))
        if dice.chance(0.05):
            lines.append("")
    return "\n".join(lines) + "\n"

NOTES = """# Running the allotment

Some words before anything else.

## Seeds & dates

### What to sow in March?

```sh
# not a heading
echo "## nor this"
```

## Watering

Water early. ##Not a heading either

### The pump

## Watering

#### Too deep for the list

### Winter

## Who does what (2025)
"""
MORE_NOTES = """Intro without a heading

# Handbook

~~~
## in a fence
~~~

## Getting started

### Install

### Install

## FAQ

##### Small print

# Appendix
"""

SETTINGS = """; settings of the shop
[server]
host = 0.0.0.0
port = 8080
debug = no
base_url = https://example.org/shop?x=1

[server.tls]
enabled = yes
; renewed in May
days_left = 41

[mail]
from = "Shop" <shop@example.org>
retries = 3
timeout = 2.5
backup =

[features]
new_cart = true
old_cart = off
version = 1.10.2
"""
MORE_SETTINGS = """[paths]
root = C:\\data
depth = -2

[cache]
on = TRUE
ratio = 0.75
label = 007 is a name

[cache.redis]
port = 6379
cluster = False
"""


def month_sales(seed):
    """Three months of a shop's sales; each has its columns in another order, one a column more."""
    dice = Dice(seed)
    files = {}
    orders_of = {"jan.csv": ["Item", "Qty", "Price"], "feb.csv": ["Price", "Item", "Qty"],
                 "mar.csv": ["Qty", "Cashier", "Item", "Price"]}
    for name, columns in orders_of.items():
        rows = [columns]
        for _ in range(dice.integer(9, 16)):
            cells = {"Item": dice.pick(["Mug", "Poster", "Tote bag", "Pin, enamel"]), "Qty": dice.integer(1, 9),
                     "Price": f"{dice.uniform(2, 28):.2f}", "Cashier": dice.pick(["Ola", "Max"])}
            rows.append([cells[column] for column in columns])
        files[name] = csv_text(rows)
    return files
