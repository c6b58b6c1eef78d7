"""Point reads of stores, of this project's own and of real engines: which points of workloads they
are, and what filters cost and save in them. All formulas of the tables `workloads` and `break_even`
and of the figures of reads stand here.

gain            time of a get without filters (always_maybe) over that with them, all else equal.
break-even      gets of absent keys after which the filters of a store have paid their building:
                build ns per key * keys / (ns per get without filters - ns with them). A store of
                shape `files` asks each of its files in every such get, so that of its files,
                numbers of keys and savings alike, each has paid after as many gets as all.
memory saved    bits per key that a Bloom filter would take at the other filter's FPR (measured
                ones, interpolated along log FPR) less those that the other takes, times keys / 8.
for extra CPU   memory saved over (build ns per key of the other less that of the Bloom filter) *
                keys: bytes for each CPU second of building. Of filters that are held for T seconds
                it buys T times as many byte seconds; lookups are beside it, since they go on.
"""

import math

import pandas
from scipy import stats

from plots import ratios, selection
from plots.ratios import Measured, Unknown

OWN = "lsm_get"
ENGINES = (OWN, "rocksdb_get", "leveldb_get")
BLOCK_READS = "block_reads_per_get"
# What of a point of gets says how the store is asked, beside its filter.
_CONDITIONS = ("workload", "knobs", "keys", "key_set", "hashing", "target")
_CLOSE = 1e-9


def gets(run):
    """The points of gets that count, of one key set and of the best target."""
    points = run.workloads
    points = points[points["workload"].isin(ENGINES)]
    points = selection.ok(selection.plain_keys(points))
    return selection.best_target(points, run.best_target)


def of_files(points):
    """Those of stores whose files all overlap and are never merged."""
    if "knob.shape" not in points or "knob.files" not in points:
        return points[:0]
    return points[(points["knob.shape"] == "files") & points["knob.files"].notna()]


def seeks(points, key):
    """The gets that theory speaks of: of absent keys (`absent`), or of keys that are in the file
    which is asked last (`deepest`)."""
    if key == "absent":
        return points[points["negative_share"] == 1]
    if "knob.present_keys" not in points:
        return points[:0]
    return points[(points["negative_share"] == 0) & (points["knob.present_keys"] == "oldest")]


def metric(row, name=BLOCK_READS):
    """A metric of a point with its interval. Raises Unknown."""
    found = row["metrics"].get(name)
    if found is None or math.isnan(found["value"]):
        raise Unknown(f"{row['workload']} tells no {name}")
    return Measured(found["value"], found["low"], found["high"])


def clopper_pearson(count, trials, confidence=0.95):
    """The share of `trials` that happened, with its exact interval."""
    tail = (1 - confidence) / 2
    return Measured(count / trials,
                    float(stats.beta.ppf(tail, count, trials - count + 1)) if count else 0.0,
                    float(stats.beta.isf(tail, count + 1, trials - count))
                    if count < trials else 1.0)


def pooled_fpr(rows):
    """(FPR with its interval, queries) of the rows of one filter together. Raises Unknown."""
    queries, count = rows["queries"].sum(), rows["false_positives"].sum()
    if not queries > 0:
        raise Unknown("its filters were asked no absent keys")
    return clopper_pearson(count, queries), queries


# --- What a filter saves, and costs ---

def _conditions(row, but=()):
    return tuple(row[name] for name in _CONDITIONS if name not in but) + (
        None if math.isnan(row["negative_share"]) else row["negative_share"],)


class Reads:
    """The gets of a run, as tables and figures ask them."""

    def __init__(self, run):
        self.points = gets(run)
        self.rows = self.points.to_dict("records")
        self._without = {_conditions(row): row for row in self.rows
                         if row["filter"] == selection.ALWAYS_MAYBE}
        self._builds = _builds(run)

    def without(self, row):
        """The same gets without filters. Raises Unknown."""
        found = self._without.get(_conditions(row))
        if found is None:
            raise Unknown(f"no {selection.ALWAYS_MAYBE} with the same knobs")
        return found

    def gain(self, row):
        """How many times as long a get takes without filters. Raises Unknown."""
        return ratios.time(self.without(row)).over(ratios.time(row))

    def build_ns_per_key(self, row):
        """Over the filters of a store: the median of the builds, from the least to the greatest,
        unknown for a single one. Raises Unknown."""
        if math.isnan(row["build_ns_per_key"]):
            raise Unknown("the time of building is not known")
        builds = self._builds.get(row["point_id"], [])
        if len(builds) < 2:
            return Measured(row["build_ns_per_key"])
        return Measured(row["build_ns_per_key"], min(builds), max(builds))

    def break_even_gets(self, row):
        """Gets of absent keys after which the filters have paid their building. Raises Unknown."""
        if row["negative_share"] != 1:
            raise Unknown("not all keys are absent")
        return break_even_gets(self.build_ns_per_key(row), row["keys"],
                               ratios.time(self.without(row)), ratios.time(row))


def _builds(run):
    """{point id: ns per key of each build}"""
    samples = run.samples[run.samples["build_ns_per_key"].notna()]
    return {point_id: list(rows["build_ns_per_key"])
            for point_id, rows in samples.groupby("point_id")}


def difference(one, other):
    """one - other with the interval of independent values: the errors' squares add up."""
    value = one.value - other.value
    return Measured(value, value - math.hypot(one.value - one.low, other.high - other.value),
                    value + math.hypot(one.high - one.value, other.value - other.low))


def break_even_gets(build_ns_per_key, keys, without, with_filters):
    """Raises Unknown where filters save no time."""
    saved = difference(without, with_filters)
    if saved.value <= 0:
        raise Unknown("the filters save no time here")
    cost = Measured(*(value * keys for value in build_ns_per_key))
    # Where the saving may be nothing, it may take for ever.
    return Measured(cost.value / saved.value, cost.low / saved.high,
                    cost.high / saved.low if saved.low > 0 else
                    math.nan if math.isnan(saved.low) else math.inf)


def memory_for_cpu(keys, bits, build_ns_per_key, of_bloom):
    """(bytes saved, CPU seconds of building more, the one over the other); `of_bloom`: bits and
    build ns per key at the same FPR. The last is None where nothing is paid or nothing saved."""
    saved = keys * (of_bloom[0] - bits) / 8
    seconds = keys * (build_ns_per_key - of_bloom[1]) * 1e-9
    return saved, seconds, saved / seconds if saved > 0 and seconds > _CLOSE * 1e-9 else None


def at_the_fpr_of(row, blooms):
    """The Bloom filter of the same store at the FPR of `row`, as (bits per key, build ns per key,
    ns per get), interpolated between those that were measured. Raises Unknown."""
    alike = [bloom for bloom in blooms if _conditions(bloom) == _conditions(row)]
    if not alike:
        raise Unknown("no Bloom filter with the same knobs")
    if not row["fpr_measured"] > 0:
        raise Unknown("its FPR is not known: no false positive was seen")
    found = selection.at_fpr(pandas.DataFrame(alike), row["fpr_measured"],
                             ["bits_per_key", "build_ns_per_key", "ns_per_op"])
    if found is None or found[1] is not None:
        raise Unknown("no Bloom filters on both sides of its FPR")
    return tuple(found[0])
