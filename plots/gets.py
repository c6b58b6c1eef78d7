"""Point reads of stores, of this project's own and of real engines: which points of workloads they
are, and what filters cost and save in them. All formulas of the tables `workloads` and `break_even`
and of the figures of reads stand here.

gain            time of a get without filters (always_maybe) over that with them, all else equal.
break-even      gets of absent keys after which the filters of a store have paid their building:
                build ns per key * keys / (ns per get without filters - ns with them). A store of
                shape `files` asks each of its files in every such get, so that of its files,
                numbers of keys and savings alike, each has paid after as many gets as all.
memory saved    bits per key that a Bloom filter would take at the ribbon's FPR (measured ones,
                interpolated along log FPR) less those that the ribbon takes, times keys / 8.
for extra CPU   memory saved over (build ns per key of the ribbon less that of the Bloom filter) *
                keys: bytes for each CPU second of building. Filters that are held for T seconds
                buy T times as many byte seconds with it; what gets cost more stands beside it,
                since it is paid as long as there are gets.
"""

import math
from typing import NamedTuple

import pandas
from scipy import stats

from plots import ratios, selection
from plots.ratios import Measured, Unknown

OWN = "lsm_get"
ENGINES = (OWN, "rocksdb_get", "leveldb_get")
BLOCK_READS = "block_reads_per_get"
KEYS = ("absent", "deepest")  # that theory knows the block reads of
# What filters that save memory are compared with: the first of these that was measured.
BLOOMS = ("rocksdb_bloom", "blocked_bloom", "km_bloom", "classic_bloom")
RIBBONS = ("ribbon", "bumped_ribbon")
# What of a point of gets says how the store is asked, beside its filter; of each filter there is one
# target left.
_CONDITIONS = ("workload", "knobs", "keys", "key_set", "hashing")


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

def _conditions(row):
    return (*(row[name] for name in _CONDITIONS),
            None if math.isnan(row["negative_share"]) else row["negative_share"])


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

    def bloom_exchange(self, row):
        """What a filter of RIBBONS saves and costs against a Bloom filter. Raises Unknown."""
        name, blooms = bloom_of(self.rows)
        if name is None:
            raise Unknown(f"none of {', '.join(BLOOMS)} was measured")
        bits, build_ns, get_ns = at_the_fpr_of(row, blooms)
        saved = bytes_saved(row["keys"], row["bits_per_key"], bits)
        more = row["build_ns_per_key"] - build_ns
        if math.isnan(more):
            raise Unknown("the time of building is not known")
        try:
            exchange = bytes_per_cpu_second(saved, row["keys"], more)
        except Unknown:
            exchange = math.nan
        return Exchange(name, saved, more, row["ns_per_op"] - get_ns, exchange)


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


class Exchange(NamedTuple):
    """A filter against a Bloom filter of the same FPR."""

    bloom: str             # which
    bytes_saved: float
    build_ns_more: float   # per key
    get_ns_more: float
    bytes_per_cpu_second: float


def bytes_per_cpu_second(bytes_saved, keys, build_ns_more):
    """Raises Unknown where nothing is saved or nothing paid."""
    if bytes_saved <= 0:
        raise Unknown("it saves no memory at its FPR")
    if build_ns_more <= 0:
        raise Unknown("it takes no longer to build")
    return bytes_saved / (keys * build_ns_more * 1e-9)


def bytes_saved(keys, bits_per_key, bloom_bits_per_key):
    return keys * (bloom_bits_per_key - bits_per_key) / 8


def at_the_fpr_of(row, blooms):
    """The Bloom filter of the same store at the FPR of `row`, as (bits per key, build ns per key,
    ns per get), interpolated between those of `blooms`, of one variant. Raises Unknown."""
    alike = [bloom for bloom in blooms if _conditions(bloom) == _conditions(row)]
    if not alike:
        raise Unknown("no Bloom filter with the same knobs")
    if not row["fpr_measured"] > 0:
        raise Unknown("its FPR is not known: no false positive was seen")
    found = selection.at_fpr(pandas.DataFrame(alike), row["fpr_measured"],
                             ["bits_per_key", "build_ns_per_key", "ns_per_op"])
    if found is None or found[1] is not None:
        raise Unknown("no Bloom filters on both sides of its FPR")
    return tuple(float(value) for value in found[0])


def bloom_of(rows):
    """The Bloom filter among `rows` that others are compared with: the first of BLOOMS, of several
    variants the first."""
    for name in BLOOMS:
        own = [row for row in rows if row["filter"] == name]
        if own:
            variant = min((row["variant"] for row in own), key=selection.natural)
            return name, [row for row in own if row["variant"] == variant]
    return None, []
