"""What the results of the requests must contain, worked out from the attached files with plain Python.

    python3 bench/agent/reference.py            writes "check" and "second.check" into the requests
    python3 bench/agent/reference.py --check    says which lines differ, exit 1 if any does

Nothing here comes from a recorded program: other language constructs, no pandas, no numpy, no Node. Each function
takes the files' bytes by name and returns the check (bench/README.md lists the rules); a request with a second input is
worked out twice.
"""

import json
import sys

import cases
from expected import analysis, charts, scripts, tasks

REQUESTS = ("bench/requests.jsonl", "examples/requests.jsonl", "bench/tasks.jsonl", "examples/tasks.jsonl")

REFERENCE = {
    "da-1": analysis.revenue_per_region,
    "da-2": analysis.revenue_per_month,
    "da-3": analysis.rent_per_metre,
    "da-4": analysis.hours_in_march,
    "da-5": analysis.survey_scores,
    "da-6": analysis.spending,
    "da-7": analysis.temperatures,
    "da-8": analysis.stock_value,
    "da-9": analysis.study_correlation,
    "da-10": analysis.savings,
    "ch-1": charts.house_prices,
    "ch-2": charts.revenue_per_category,
    "ch-3": charts.energy_per_day,
    "ch-4": charts.run_paces,
    "ch-5": charts.daily_temperatures,
    "ch-6": charts.heard_about_us,
    "ch-7": charts.marks_per_class,
    "ch-8": charts.month_end_balances,
    "ch-9": charts.calls_per_hour,
    "ch-10": charts.members,
    "sc-1": scripts.clean_contacts,
    "sc-2": scripts.errors_per_hour,
    "sc-3": scripts.shifted_subtitles,
    "sc-4": scripts.orders_per_customer,
    "sc-5": scripts.contents_of_notes,
    "sc-6": scripts.trip_balances,
    "sc-7": scripts.wrong_ibans,
    "sc-8": scripts.settings_as_json,
    "sc-9": scripts.workbook_by_region,
    "sc-10": scripts.merged_quarter,
    "demo-1": charts.house_prices,
    "demo-2": tasks.price_per_metre,
    "demo-3": tasks.telling_measure,
    "demo-4": tasks.districts_as_json,
    "demo-5": tasks.worth_of_a_garden,
    "ag-1": tasks.fridays,
    "ag-2": tasks.fiftieth_prime,
    "ag-4": tasks.quiet_customers,
}


def completed(line):
    """The request's line with what it must give; one that must give up has nothing to give."""
    if "ends" in line:
        return line
    check = REFERENCE[line["id"]]
    line = line | {"check": check(cases.read_files(line.get("files", [])))}
    if "second" in line:
        second = line.pop("second")
        line["second"] = {"files": second["files"], "check": check(cases.read_files(second["files"]))}
    return line


def main(arguments):
    if arguments not in ([], ["--check"]):
        sys.exit(__doc__)
    differing = []
    for path in REQUESTS:
        lines = cases.read_jsonl(path)
        fresh = [completed(line) for line in lines]
        differing += [line["id"] for line, other in zip(lines, fresh) if json.dumps(line) != json.dumps(other)]
        if not arguments:
            cases.write_jsonl(path, fresh)
    if arguments and differing:
        sys.exit("differ from what reference.py works out: " + ", ".join(differing))


if __name__ == "__main__":
    main(sys.argv[1:])
