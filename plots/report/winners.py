"""The sentences above the headline table: what won, by how much, and whether that is certain."""

import math

from plots import headline, ratios, selection, space_vs_speed, style

_COLUMNS = ["bits_per_key", "ns_per_op", "ns_per_op_low", "ns_per_op_high"]


def _percent(fpr):
    return f"{100 * fpr:g} %"


def _name(name, variant):
    return f"{name} ({variant})" if variant else name


def _contenders(points, target_fpr):
    """[(name, time, bits per key)] of what lies at the FPR, the fastest first."""
    found = []
    for name, variant, rows in selection.series(selection.filters_only(points)):
        at = selection.at_fpr(rows, target_fpr, _COLUMNS)
        if at is not None and at[1] is None:
            values = at[0]
            found.append((_name(name, variant), ratios.Measured(*values[_COLUMNS[1:]]),
                          values["bits_per_key"]))
    return sorted(found, key=lambda entry: (entry[1].value, entry[0]))


def _sentence(keys, target_fpr, contenders):
    name, time, bits = contenders[0]
    text = (f"At {style.count(keys)} keys and an FPR of {_percent(target_fpr)}, {name} denies "
            f"absent keys fastest: {time} ns at {headline.number(bits)} bits per key")
    if len(contenders) == 1:
        return text + "; nothing else was measured at that FPR."
    second, other, _ = contenders[1]
    if not (time.has_interval() and other.has_interval()):
        doubt = " (intervals unknown)"
    else:
        doubt = "" if time.surely_below(other) else ": within noise, their intervals overlap"
    text += f"; {second} takes {other.over(time)} times as long{doubt}."
    smallest = min(contenders, key=lambda entry: entry[2])
    if smallest[0] == name:
        return text + " It is also the smallest."
    return text + (f" The smallest is {smallest[0]}: {headline.number(smallest[2])} bits per key, "
                   f"{smallest[1].over(time)} times as long.")


def sentences(run):
    """For each FPR that figures use: at the smallest and the largest key count at which most
    filters lie at it. One sentence that says why where there is nothing to tell."""
    points = selection.best_target(selection.lookups(run, negative_share=1.0), run.best_target)
    points = points[points["bits_per_key"].notna()]
    found = []
    for target_fpr in space_vs_speed.TARGET_FPRS:
        places = {keys: _contenders(rows, target_fpr) for keys, rows in points.groupby("keys")}
        most = max(map(len, places.values()), default=0)
        counts = [keys for keys, there in places.items() if there and 2 * len(there) >= most]
        for keys in selection.spread(counts, 2):
            found.append(_sentence(keys, target_fpr, places[keys]))
    if not found:
        return ["No winner can be named: the run has no negative batched lookups on both sides of "
                f"an FPR of {' or '.join(map(_percent, space_vs_speed.TARGET_FPRS))}."]
    return found


def summary(run):
    """How much was measured, as (label, value)."""
    frames = [frame for frame in run.filter_frames if len(frame)]
    total = sum(map(len, frames))
    good = sum(int((frame["status"] == "ok").sum()) for frame in frames)
    names = {name for frame in frames for name in selection.filters_only(frame)["filter"]}
    keys = sorted({n for frame in frames for n in frame["keys"]})
    stable = [flag for frame in frames for flag in frame["stable"] if flag is not None]
    found = [("points", f"{total}"), ("ok", f"{good}"), ("filters", f"{len(names)}"),
             ("keys", style.counts(keys) if keys else "none"),
             ("samples", f"{(~run.samples['point_id'].isin(run.workloads['point_id'])).sum()}")]
    if len(run.workloads):
        found.append(("points of workloads, not on this page", f"{len(run.workloads)}"))
    if stable:
        found.append(("stable", f"{sum(map(bool, stable))} of {len(stable)}"))
    widths = [width for frame in frames for width in
              (frame["ns_per_op_high"] - frame["ns_per_op_low"]) / frame["ns_per_op"]
              if not math.isnan(width)]
    if widths:
        found.append(("median width of intervals",
                      f"{100 * sorted(widths)[len(widths) // 2]:.2g} %"))
    return found
