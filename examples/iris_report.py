"""Describes a table of measurements by group: prints a summary, saves a chart, a CSV and a spreadsheet.

Run it in a sandbox:
    sbx-run --input examples/iris.csv --output-dir out examples/iris_report.py
"""

import os

import matplotlib.pyplot as plt
import pandas as pd

INPUT = os.environ.get("REPORT_INPUT", "/input")
OUTPUT = os.environ.get("REPORT_OUTPUT", "/output")
COLOURS = {"setosa": "#0072b2", "versicolor": "#e69f00", "virginica": "#009e73"}
MARKERS = {"setosa": "o", "versicolor": "s", "virginica": "^"}


def summarise(flowers):
    """Mean and standard deviation of every measurement, a row per species."""
    summary = flowers.groupby("species").agg(["mean", "std"]).round(2)
    summary.columns = [f"{measure}_{statistic}" for measure, statistic in summary.columns]
    summary.insert(0, "count", flowers["species"].value_counts())
    return summary


def label(column):
    """'petal_length_cm' as a person would write it."""
    name, unit = column.rsplit("_", 1)
    return f"{name.replace('_', ' ').capitalize()} ({unit})"


def draw_scatter(axes, flowers):
    for species, group in flowers.groupby("species"):
        axes.scatter(group["petal_length_cm"], group["petal_width_cm"], s=38, alpha=0.75, linewidth=0.5,
                     edgecolor="white", color=COLOURS[species], marker=MARKERS[species], label=f"I. {species}")
    axes.set(xlabel=label("petal_length_cm"), ylabel=label("petal_width_cm"))
    axes.set_title("Petals tell the species apart", loc="left", fontweight="bold")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, loc="upper left")


def draw_boxes(axes, flowers, measures):
    species = list(COLOURS)
    for offset, name in zip((-0.25, 0.0, 0.25), species):
        boxes = axes.boxplot([flowers.loc[flowers["species"] == name, measure] for measure in measures],
                             positions=[position + offset for position in range(len(measures))], widths=0.2,
                             patch_artist=True, medianprops={"color": "white", "linewidth": 1.5},
                             flierprops={"markersize": 3, "markeredgecolor": COLOURS[name]})
        for box in boxes["boxes"]:
            box.set(facecolor=COLOURS[name], edgecolor=COLOURS[name], alpha=0.85)
    names = [measure.rsplit("_", 1)[0].replace("_", "\n") for measure in measures]
    axes.set_xticks(range(len(measures)), names)
    axes.set_ylabel("Centimetres")
    axes.set_title("All measurements", loc="left", fontweight="bold")
    axes.grid(axis="y", alpha=0.25)


def draw(flowers, measures, path):
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
    draw_scatter(left, flowers)
    draw_boxes(right, flowers, measures)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_axisbelow(True)
    figure.suptitle(f"{len(flowers)} irises of three species", fontsize=14)
    figure.savefig(path, dpi=150)


def main():
    flowers = pd.read_csv(os.path.join(INPUT, "iris.csv"))
    measures = [column for column in flowers.columns if column != "species"]
    summary = summarise(flowers)

    draw(flowers, measures, os.path.join(OUTPUT, "iris.png"))
    summary.to_csv(os.path.join(OUTPUT, "summary.csv"))
    summary.to_excel(os.path.join(OUTPUT, "summary.xlsx"), sheet_name="summary")

    means = summary.filter(like="_mean").rename(columns=lambda name: name.removesuffix("_cm_mean"))
    print(f"{len(flowers)} flowers; means in centimetres:\n")
    print(means.rename_axis(index=None, columns="species").to_string(float_format="{:.2f}".format))
    print(f"\nPetal length and width correlate at {flowers[measures[2]].corr(flowers[measures[3]]):.3f}.")


if __name__ == "__main__":
    main()
