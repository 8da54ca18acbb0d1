"""The results file of a benchmark, bench/results/<label>.json, written after every case: --resume goes on from it."""

import json
import os
import pathlib
import re
import statistics

import cases
import endings

RESULTS = cases.ROOT / "bench/results"
LABEL = re.compile(r"[\w.-]{1,80}")


class Report:
    """What is known of a labelled run: its settings, the cases by id, and a summary made of them."""

    def __init__(self, label, settings, resume, summarise, directory=RESULTS):
        if not LABEL.fullmatch(label):
            endings.stop(endings.WRONG_USE, f"a label is of letters, digits, '.', '_' and '-': {label!r}")
        self._path = pathlib.Path(directory) / f"{label}.json"
        self._summarise = summarise
        self._content = {"label": label, "settings": settings, "summary": {}, "cases": {}}
        if resume and self._path.is_file():
            earlier = json.loads(self._path.read_text(encoding="utf-8"))
            if earlier["settings"] != settings:
                endings.stop(endings.WRONG_USE,
                             f"{self._path} was made with {earlier['settings']}, not with {settings}")
            self._content["cases"] = {name: case for name, case in earlier["cases"].items() if "error" not in case}
        self._content["summary"] = summarise(self.cases)    # also of a run that has nothing left to do

    @property
    def label(self):
        return self._content["label"]

    @property
    def path(self):
        return self._path

    @property
    def summary(self):
        return self._content["summary"]

    @property
    def cases(self):
        return self._content["cases"]

    def has(self, name):
        return name in self.cases

    def add(self, name, outcome):
        self.cases[name] = outcome
        self._content["summary"] = self._summarise(self.cases)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_suffix(".json.new")
        fresh.write_text(json.dumps(self._content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        os.replace(fresh, self._path)


def mean(values):
    return statistics.fmean(values) if values else 0.0


def by_category(outcomes, figures):
    """{"overall": figures of all, category: figures of its own}; outcomes that are errors of ours are counted apart."""
    groups = {"overall": list(outcomes.values())}
    for outcome in outcomes.values():
        groups.setdefault(outcome["category"], []).append(outcome)
    return {name: figures([outcome for outcome in group if "error" not in outcome])
            | {"errors": sum("error" in outcome for outcome in group)} for name, group in groups.items()}


def markdown(summary, columns):
    """The summary as the table that RESULTS.md shows; `columns` is {heading: (key, format)}."""
    lines = ["| | " + " | ".join(columns) + " |", "|---|" + "--:|" * len(columns)]
    for name, figures in summary.items():
        cells = [form.format(figures[key]) for key, form in columns.values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
