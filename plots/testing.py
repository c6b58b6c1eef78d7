"""Writes synthetic runs, deterministic in their arguments, for the tests and for trying a figure:

    /usr/bin/python3 -m plots.testing DIRECTORY [--tiny]

The numbers only have the shapes of real ones (a floor that climbs at the cache sizes, an FPR that
falls exponentially): they are nobody's theory and nobody's measurement.
"""

import argparse
import copy
import hashlib
import itertools
import json
import math
import pathlib

import numpy
from scipy import stats

FILTERS = ("classic_bloom", "km_bloom", "blocked_bloom", "ribbon", "cuckoo")
BASELINES = ("hash_only", "touch_lines")
ALWAYS_MAYBE = "always_maybe"
RUN_NAME = "20261130T152001Z-0123456789ab-89abcdef"
MACHINE = "example-cpu-0a1b2c3d"
CACHES = ((1, "data", 32 << 10), (1, "instruction", 32 << 10), (2, "unified", 512 << 10),
          (3, "unified", 32 << 20))

# What a figure shows of full_points(), if it is not all of FILTERS: only some filters cost least,
# can be overfilled, or have vectors.
OVERFILLED = ("classic_bloom", "blocked_bloom", "cuckoo", "scalable_bloom")
SHOWN = {"winner_map": ("blocked_bloom", "km_bloom", "ribbon"),
         "fpr_vs_overfill": (*OVERFILLED, *FILTERS),
         "construction": ("cuckoo", "ribbon"),
         "double_hashing": ("classic_bloom", "km_bloom"),
         "simd_gain": ("blocked_bloom", "cuckoo", "ribbon")}

_BUILD_NS = {"classic_bloom": 30.0, "km_bloom": 16.0, "blocked_bloom": 3.0, "ribbon": 70.0,
             "cuckoo": 25.0}
_SIMD = {"scalar": 1.0, "sse4": 0.7, "avx2": 0.45, "avx3": 0.3}


def _params(name, bits_per_key):
    """The parameter objects of filter `name` near `bits_per_key`."""
    k = max(1, round(0.69 * bits_per_key))
    if name == "classic_bloom":
        return [{"bits_per_key": bits_per_key, "k": k}]
    if name == "km_bloom":
        return [{"bits_per_key": bits_per_key, "k": k, "probing": p} for p in ("plain", "enhanced")]
    if name == "blocked_bloom":
        return [{"bits_per_key": bits_per_key, "k": max(1, round(0.6 * bits_per_key))}]
    if name == "ribbon":
        return [{"bits_per_key": bits_per_key, "fpr": 0.0, "width": w} for w in ("64", "128")]
    if name == "cuckoo":
        bits = 8 if bits_per_key <= 10 else 12 if bits_per_key <= 14 else 16
        return [{"fingerprint_bits": str(bits), "load": 0.95}]
    if name == "touch_lines":
        return [{"bits_per_key": bits_per_key, "lines": lines} for lines in (1, 2)]
    if name in ("hash_only", ALWAYS_MAYBE):
        return [{}]
    return [{"bits_per_key": bits_per_key}]


def _bits_and_fpr(name, params, keys):
    if name == "hash_only":
        return 128 / keys, None
    if name == "cuckoo":
        fingerprint_bits = int(params["fingerprint_bits"])
        return fingerprint_bits / 0.95, 7.6 * 2.0 ** -fingerprint_bits
    bits = params["bits_per_key"] * (1 + 0.01 / math.log10(max(keys, 11)))
    if name == "touch_lines":
        return bits, None
    if name == "ribbon":
        return bits, 2.0 ** (-bits / (1.08 if params["width"] == "64" else 1.03))
    if name == "blocked_bloom":
        return bits, 0.6185 ** (bits * (0.99 - 0.008 * bits))
    small = 1 + 300 / keys if params.get("probing") == "plain" else 1.0
    return bits, min(1.0, 0.6185 ** bits * small)


def _floor_ns(size_bytes):
    """A random cache line: cheap inside the caches, dear beyond them."""
    levels = [(size, weight) for size, weight in zip(
        (size for _, kind, size in CACHES if kind != "instruction"), (0.7, 2.0, 7.0))]
    return 0.8 + sum(weight / (1 + (size / size_bytes) ** 1.5) for size, weight in levels)


def _lookup_ns(name, params, size_bytes, share, target):
    if name == "hash_only":
        return 0.6 + 0.3 * _SIMD[target]
    floor = _floor_ns(size_bytes)
    if name == "touch_lines":
        return floor * (1 + 0.8 * (params["lines"] - 1))
    if name in ("classic_bloom", "km_bloom"):
        hits = (2.0 + (params["k"] - 2) * (1 - share))
        extra = 40 * share * (1 - share)  # what the branch predictor loses where answers are mixed
        return hits * (floor + (4 if name == "classic_bloom" else 1.5)) * 0.7 + extra * 0.2
    work = {"blocked_bloom": 1.6, "cuckoo": 3.0, "ribbon": 7.0}.get(name, 5.0)
    lines = {"blocked_bloom": 1.0, "cuckoo": 1.8, "ribbon": 1.5}.get(name, 1.2)
    if name == "ribbon" and params["width"] == "128":
        work *= 1.4
    return lines * floor + work * _SIMD[target] + (0.5 * share if name == "cuckoo" else 0)


def _slots_per_key(name, params, keys):
    """None for filters without slots."""
    if name == "ribbon":
        return (1.04 if params.get("width") == "64" else 1.02) + 0.01 * math.log10(keys) + 8 / keys
    return 1 / 0.95 + 4 / keys if name == "cuckoo" else None


def _construction(name, params, keys):
    """How three builds went, in fields of summary.json."""
    slots = _slots_per_key(name, params, keys)
    attempts = {"builds": 3, "failed_builds": 0, "median": 1, "mean": 1, "max": 1}
    if name == "ribbon":
        attempts |= {"mean": 4 / 3, "max": 2}
    return {"slots_per_key": slots, "build_attempts": attempts,
            "peak_build_bytes_per_key": 24.0 if name == "ribbon" else 2.0} | (
                {} if slots else {"slots_per_key_reason": "the filter does not count slots"})


def _identity(point):
    text = json.dumps(point, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def make_point(name, params, keys, mode, share, target, *, ns=None, bits=None, fpr=None,
               queries=1_000_000, false_positives=None, floor=None, floor_from=("0" * 16,),
               status="ok", reason=None, build_ns=None, key_set=None, fill=None, keys_held=None):
    """One entry of summary.json; `fpr` is the expected one, `floor` the floor's ns, `floor_from`
    the ids of the points that it is from. With a `fill`, `bits` are per key held."""
    build_reason = {} if build_ns is not None else {"build_ns_per_key_reason": "not timed"}
    point = {"filter": name, "params": params, "keys": keys,
             "key_set": key_set or {"kind": "mixed"}, "mode": mode, "negative_share": share,
             "hashing": "prehashed", "target": target} | ({} if fill is None else {"fill": fill})
    entry = {"point_id": _identity(point), "point": point, "status": status, "reason": reason,
             "rounds": 3, "passes": 15, "ns_per_op": None, "floor": None, "floor_reason": None,
             "size_bytes": None, "bits_per_key": bits, "build_ns_per_key": build_ns, "fpr": None,
             "filter_digest": [], "answers_digest": []} | build_reason
    held = keys if keys_held is None else keys_held
    if fill is not None:
        entry["keys_held"] = [held] * 3
    if bits is not None:
        entry["size_bytes"] = max(64, math.ceil(bits * held / 8))
        entry |= _construction(name, params, keys)
    elif status == "build_failed":
        entry["build_attempts"] = {"builds": 0, "failed_builds": 3, "median": None, "mean": None,
                                   "max": None, "reason": "no build succeeded"}
    if ns is not None:
        entry["ns_per_op"] = {"median": ns, "low": 0.97 * ns, "high": 1.04 * ns, "confidence": 0.95,
                              "min": 0.95 * ns}
    if ns is not None and floor is not None:
        entry["floor"] = {"ns_per_op": floor, "ratio": ns / floor, "from": list(floor_from)}
    else:
        entry["floor_reason"] = "no touch_lines point"
    if fpr is not None and status == "ok":
        measured = false_positives / queries
        spread = 1.96 * math.sqrt(max(false_positives, 1)) / queries
        entry["fpr"] = {"expected": fpr, "measured": measured,
                        "low": max(0.0, measured - spread) if false_positives else 0.0,
                        "high": min(1.0, measured + spread) if false_positives else 3.69 / queries,
                        "false_positives": false_positives, "queries": queries}
    return entry


def make_points(filters=FILTERS, baselines=BASELINES, bits_per_key=(4, 8, 10, 12, 16, 20),
                keys=(10_000, 100_000, 1_000_000, 10_000_000, 100_000_000),
                shares=(0.0, 0.5, 1.0), targets=("scalar", "sse4", "avx2"),
                modes=("build", "lookup_batched", "lookup_single"), failing=True, seed=1,
              queries=1_000_000):
    """The entries of summary.json for a whole grid. With `failing`, the ribbon of width 64 fails to
    build at the largest key count and one point of the cuckoo filter runs out of memory."""
    random = numpy.random.default_rng(seed)
    entries = {}
    for name in (*filters, *baselines):
        for bits_asked in bits_per_key:
            for params in _params(name, float(bits_asked)):
                for n in keys:
                    bits, fpr = _bits_and_fpr(name, params, n)
                    false_positives = None if fpr is None else int(random.binomial(queries, fpr))
                    for mode in modes:
                        for entry in _entries_of_mode(name, params, n, bits, fpr, queries,
                                                      false_positives, mode, shares, targets,
                                                      failing and n == max(keys), random):
                            entries.setdefault(entry["point_id"], entry)
    return list(entries.values())


def _entries_of_mode(name, params, n, bits, fpr, queries, false_positives, mode, shares, targets,
                     largest_fails, random):
    if name in BASELINES and mode in ("build", "lookup_reference"):
        return
    has_simd = name not in ("classic_bloom", "km_bloom")
    for share in ((None,) if mode == "build" else shares):
        for target in (targets if has_simd and mode != "build" else targets[:1]):
            common = {"bits": bits, "fpr": fpr, "queries": queries,
                      "false_positives": false_positives}
            if largest_fails and name == "ribbon" and params.get("width") == "64":
                yield make_point(name, params, n, mode, share, target, status="build_failed",
                                 reason="no seed of 64 gave a solution")
                continue
            if largest_fails and name == "cuckoo" and params["fingerprint_bits"] == "16":
                yield make_point(name, params, n, mode, share, target, status="out_of_memory",
                                 reason="needs 212 MB, 190 MB are free")
                continue
            build = _BUILD_NS.get(name, 20.0) * (1 + 0.25 * max(0, math.log10(n) - 5))
            noise = math.exp(random.normal(0, 0.02))
            if mode == "build":
                ns, floor = build * noise, None
            else:
                size = max(64.0, bits * n / 8)
                ns = _lookup_ns(name, params, size, share, target) * noise
                ns *= {"lookup_single": 1.5, "latency": 4.0}.get(mode, 1)
                if mode == "lookup_reference":
                    ns = 1.3 * _lookup_ns(name, params, size, share, "scalar") * noise
                floor = _floor_ns(size)
            yield make_point(name, params, n, mode, share, target, ns=ns, floor=floor,
                             build_ns=None if name in BASELINES else build, **common)


def make_filled_points(filters=FILTERS, keys=100_000, fills=(0.1, 0.3, 0.5, 0.7, 0.9, 1.0, 1.5),
                       shares=(0.0, 1.0), modes=("insert", "lookup_batched"),
                       target="avx2", most=None, seed=2, queries=1_000_000):
    """Entries of summary.json for filters made for `keys` keys at 10 bits per key and filled key by
    key. `most`: {filter: how many keys it holds at most}, all that it is given unless said."""
    random = numpy.random.default_rng(seed)
    points = []
    for name, fill in ((name, fill) for name in filters for fill in fills):
        for params in _params(name, 10.0):
            given = math.floor(fill * keys + 0.5)
            held = min(given, (most or {}).get(name, given))
            bits, fpr = _bits_and_fpr(name, params, keys)
            fpr = min(1.0, fpr * fill ** 2)
            common = {"bits": bits * keys / held, "fpr": fpr, "queries": queries, "fill": fill,
                      "false_positives": int(random.binomial(queries, fpr)), "keys_held": held}
            size = max(64.0, bits * keys / 8)
            for mode in modes:
                if mode == "insert" and held <= given - keys // 20:
                    points.append(make_point(name, params, keys, mode, None, "scalar",
                                             status="skipped", reason=f"it accepted {held} keys",
                                             **common))
                    continue
                for share in shares if mode == "lookup_batched" else (None,):
                    ns = (_BUILD_NS.get(name, 20.0) / (1.05 - 0.9 * min(held / keys, 1.0))
                          if share is None else _lookup_ns(name, params, size, share, "avx2"))
                    points.append(make_point(
                        name, params, keys, mode, share, "scalar" if share is None else target,
                        ns=ns * math.exp(random.normal(0, 0.02)), build_ns=ns,
                        floor=None if share is None else _floor_ns(size), **common))
    return points


def make_overfilled(filters=OVERFILLED, keys=10_000, fills=(0.5, 1.0, 1.5, 2.0, 3.0),
                    queries=1_000_000, seed=2):
    """Filters that are filled beyond what they were made for: the cuckoo filter refuses, the
    scalable one grows, the others get worse."""
    random = numpy.random.default_rng(seed)
    entries = []
    for name in filters:
        params = (_params(name, 10.0) or [{}])[0]
        for fill in fills:
            held, bits = round(keys * fill), 10.0 / fill
            fpr = min(0.9, 0.6185 ** bits * (1 + 0.02 * bits))
            if name == "cuckoo":
                held = min(held, round(1.02 * keys))
                bits, fpr = 12 * keys / 0.95 / held, 0.0018 * held / keys
            elif name == "scalable_bloom":
                bits, fpr = 14.0 * max(1, math.ceil(fill)) / fill, 0.008 * min(fill, 1.2)
            entries.append(make_point(
                name, params, keys, "overfill", None, "scalar", ns=30.0 + 5 * fill, bits=bits,
                fpr=fpr, queries=queries, false_positives=int(random.binomial(queries, fpr)),
                fill=fill, keys_held=held))
    return entries


def small_tables(keys=(1000, 2000)):
    """Bloom filters in sizes where double hashing costs something, for figure 10."""
    return make_points(filters=("classic_bloom", "km_bloom"), baselines=(), bits_per_key=(10,),
                       keys=keys, shares=(1.0,), targets=("scalar",), modes=("lookup_batched",),
                       failing=False)


_ENGINES = {"lsm_get": "own store", "rocksdb_get": "rocksdb 7.8.3", "leveldb_get": "leveldb 1.23"}
_BLOCK_NS = {"direct": 90_000.0, "cached": 1_500.0}


def make_metric(certain=0, by_chance=0, trials=0, per=1, expected=None):
    """A metric that is a ratio, as the program writes it."""
    metric = {"certain": certain, "by_chance": by_chance, "trials": trials, "per": per,
              "value": (certain + by_chance) / per}
    if expected is None:
        metric |= {"expected": None, "expected_reason": "the filters have no closed form"}
    else:
        metric |= {"expected_by_chance": expected, "expected": (certain + expected) / per}
    if not trials:
        return metric | {"low": None, "high": None, "confidence": None,
                         "interval_reason": "there is no chance in it to count"}
    low = stats.beta.ppf(0.025, by_chance, trials - by_chance + 1) if by_chance else 0.0
    high = stats.beta.ppf(0.975, by_chance + 1, trials - by_chance) if by_chance < trials else 1.0
    return metric | {"low": (certain + low * trials) / per, "high": (certain + high * trials) / per,
                     "confidence": 0.95}


def make_workload_point(name, params, keys, workload, knobs, *, share=None, metrics=None, ns=1000.0,
                        fpr=None, queries=0, false_positives=0, counters=None, parts=(),
                        phases_ns=None, facts=None, bits=10.0, build_ns=None, status="ok",
                        reason=None, target="avx2"):
    """One entry of summary.json of a point in mode `workload`."""
    entry = make_point(name, params, keys, "workload", share, target,
                       ns=ns if status == "ok" else None, bits=bits,
                       fpr=fpr if queries else None, queries=queries,
                       false_positives=false_positives, status=status, reason=reason,
                       build_ns=build_ns)
    entry["point"]["workload"] = {"name": workload} | knobs
    entry["point_id"] = _identity(entry["point"])
    entry.pop("build_attempts", None)
    entry["floor_reason"] = "a workload has no floor"
    if bits == 0:
        entry["size_bytes"] = 0
    if status == "ok":
        entry["workload"] = {"rounds": 3, "metrics": metrics or {}, "counters": counters or {},
                             "parts": list(parts), "phases_ns": phases_ns or {},
                             "facts": facts or {}}
    return entry


def make_gets(filters=FILTERS, engines=("lsm_get",), bits_per_key=(10,), files=(1, 7, 20),
              cases=((1.0, "any"), (0.0, "oldest")), reads=("cached",), keys=40_000, gets=20_000,
              seed=4, target="avx2", baseline=True):
    """Entries of summary.json for point reads of stores of shape `files`; `cases` are (share of
    negatives, which present keys)."""
    random = numpy.random.default_rng(seed)
    points = []
    for engine, name, bits_asked in itertools.product(
            engines, (*filters, *([ALWAYS_MAYBE] if baseline else [])), bits_per_key):
        for params in _params(name, float(bits_asked)):
            bits, fpr = (0.0, 1.0) if name == ALWAYS_MAYBE else _bits_and_fpr(name, params, keys)
            for n, (share, present), kind in itertools.product(files, cases, reads):
                absent = round(share * gets)
                found = gets - absent
                # A present key of the oldest file is asked of all others first; of any, of half.
                trials = absent * n + round(found * (n - 1) * (1 if present == "oldest" else 0.5))
                by_chance = int(random.binomial(trials, fpr))
                expected = None if name == ALWAYS_MAYBE else trials * fpr
                reads_per_get = (found + by_chance) / gets
                build = _BUILD_NS.get(name, 20.0)
                points.append(make_workload_point(
                    name, params, keys, engine,
                    {"shape": "files", "files": n, "value_bytes": 100, "present_keys": present,
                     "reads": kind, "operations": gets},
                    share=share, bits=bits, fpr=fpr, queries=trials, false_positives=by_chance,
                    build_ns=None if name == ALWAYS_MAYBE else build, target=target,
                    ns=(400 + 25 * n + _BLOCK_NS[kind] * reads_per_get)
                    * math.exp(random.normal(0, 0.02)),
                    metrics={"block_reads_per_get": make_metric(found, by_chance, trials, gets,
                                                                expected),
                             "filter_bytes": {"value": bits * keys / 8}},
                    counters={"gets": gets, "candidates": trials + found, "maybe_true": found,
                              "maybe_false": by_chance, "filter_negatives": trials - by_chance},
                    parts=[{"level": 0, "run": run, "candidates": gets} for run in range(n)],
                    phases_ns={"memtable": 20.0, "filter": 25.0 * n, "index": 50.0,
                               "block": _BLOCK_NS[kind] * reads_per_get},
                    facts={"reads": kind, "engine": _ENGINES[engine]}))
    return list({entry["point_id"]: entry for entry in points}.values())


def make_uses(filters=("blocked_bloom", "cuckoo"), keys=100_000, seed=5):
    """Entries of summary.json for two of the other uses of filters."""
    random = numpy.random.default_rng(seed)
    points = []
    for name in filters:
        for params in _params(name, 10.0):
            fpr = _bits_and_fpr(name, params, keys)[1]
            asked = int(random.binomial(100_000, fpr))
            points.append(make_workload_point(
                name, params, keys, "safe_browsing", {"urls": 100_000}, ns=80.0, fpr=fpr,
                queries=100_000, false_positives=asked,
                metrics={"server_asks_per_url": make_metric(0, asked, 100_000, 100_000,
                                                            100_000 * fpr)}))
            points.append(make_workload_point(
                name, params, keys, "cdn_admission", {"zipf": 0.9}, ns=120.0,
                metrics={"byte_hit_ratio": make_metric(61_000, 0, 0, 100_000),
                         "disk_writes_saved": {"value": 0.74, "low": 0.73, "high": 0.75,
                                               "confidence": 0.95}}))
    return points


def workload_points(filters=FILTERS, files=(1, 7, 20)):
    """What every figure and table of workloads is drawn from."""
    points = make_gets(filters, bits_per_key=(4, 10, 16), files=files) + make_gets(
        filters, engines=("lsm_get", "rocksdb_get", "leveldb_get"), files=files[-1:],
        cases=((1.0, "any"), (0.9, "any")), reads=("direct", "cached"), seed=6) + make_uses()
    return list({entry["point_id"]: entry for entry in points}.values())


def full_points():
    """What every figure is drawn from: two more modes at two key counts, filters filled beyond
    what they were made for, and workloads."""
    return filter_points() + workload_points()


def filter_points():
    """full_points() without those of workloads."""
    return make_points() + make_points(
        bits_per_key=(8, 10, 12), keys=(10_000, 1_000_000), shares=(1.0,), failing=False,
        modes=("latency", "lookup_reference"), seed=3) + make_overfilled() + make_filled_points(
            most={"cuckoo": 98_000})


def make_theory(filters=FILTERS):
    curves = []
    grid = [4 + 0.5 * i for i in range(37)]
    for name in filters:
        if name == "cuckoo":
            points = [{"bits_per_key": f / 0.95, "fpr": 7.6 * 2.0 ** -f} for f in (8, 12, 16)]
            curves.append({"filter": name, "label": "4 slots, load 0.95", "points": points,
                           "source": "synthetic"})
            continue
        for params in _params(name, 10.0):
            label = {"classic_bloom": "k independent hashes", "blocked_bloom": "512-bit blocks",
                     "km_bloom": f"double hashing, {params.get('probing')}",
                     "ribbon": f"w = {params.get('width')}"}.get(name, "its own")
            points = [{"bits_per_key": b,
                       "fpr": _bits_and_fpr(name, params | {"bits_per_key": b}, 1e6)[1]}
                      for b in grid]
            curves.append({"filter": name, "label": label, "source": "synthetic", "points": points})
    curves.append({"filter": None, "label": "log2(1/FPR)", "source": "synthetic",
                   "points": [{"bits_per_key": b, "fpr": 2.0 ** -b} for b in grid]})
    theory = {"schema": "filterbench/theory/1", "curves": curves,
              "block_reads": [{"key": key, "label": f"key {key}", "source": "synthetic", "points": [
                  {"candidate_files": n, "certain_reads": certain, "reads_per_fpr": n - certain}
                  for n in range(1, 41)]} for key, certain in (("absent", 0), ("deepest", 1))]}
    small = [(name, params, label, cost) for name, params, label, cost in (
        ("classic_bloom", {}, "independent", 0), (None, {}, "any step", 300),
        ("km_bloom", {"probing": "plain"}, "no step that returns", 100),
        ("km_bloom", {"probing": "enhanced"}, "enhanced, first order", 20))
             if name is None or name in filters]
    if {"classic_bloom", "km_bloom"} <= set(filters):
        theory["small_tables"] = [
            {"filter": name, "params": {"bits_per_key": 10.0, "k": 7} | params, "label": label,
             "source": "synthetic", "points": [
                 {"bits": 10 * n, "keys": n, "fpr": min(1.0, 0.0085 * (1 + cost / (10 * n)))}
                 for n in (13, 26, 51, 102, 205, 410, 819, 1638, 3277, 6554)]}
            for name, params, label, cost in small]
    slots = [{"filter": name, "params": params, "label": name, "source": "synthetic", "points": [
        {"keys": n, "slots_per_key": _slots_per_key(name, params, n)}
        for n in (10 ** e for e in range(4, 9))]}
             for name in filters for params in _params(name, 10.0)
             if _slots_per_key(name, params, 10)]
    return theory | ({"slots_per_key": slots} if slots else {})


def on_machine(points, *, times=None, vectors=1.0, everything=1.0):
    """The same points on another machine: each filter's times by its factor in `times`, those of
    targets with vectors by `vectors` too, all and the floor by `everything`."""
    points = copy.deepcopy(points)
    for entry in points:
        factor = everything * (times or {}).get(entry["point"]["filter"], 1.0)
        if entry["point"]["target"] != "scalar":
            factor *= vectors
        if entry["ns_per_op"] is not None:
            for name in ("median", "low", "high", "min"):
                entry["ns_per_op"][name] *= factor
        if entry["floor"] is not None:
            entry["floor"]["ns_per_op"] *= everything
            entry["floor"]["ratio"] = (entry["ns_per_op"]["median"]
                                       / entry["floor"]["ns_per_op"])
    return points


def make_manifest(cpu_brand="Example CPU 9000 @ 3.00GHz", caches=CACHES, best="avx2",
                  machine=MACHINE, run=RUN_NAME):
    return {"schema": "filterbench/manifest/1", "run": run, "machine": machine,
            "time_utc": "2026-11-30T15:20:01Z", "spec": {"name": "synthetic"},
            "spec_hash": "89abcdef", "seed": 1,
            "provenance": {"git_commit": "0123456789ab", "git_dirty": False, "compiler": None,
                           "flags": None, "build_type": None, "libraries": {}, "binary_xxh3": None},
            "targets": {"compiled": ["scalar", "sse4", "avx2"],
                        "supported": ["scalar", "sse4", "avx2"], "best": best},
            "environment": {
                "cpu": {"brand": cpu_brand},
                "caches": caches and [{"level": level, "type": kind, "size_bytes": size,
                                       "line_bytes": 64, "shared_by": 1}
                                      for level, kind, size in caches],
                "topology": dict.fromkeys(("packages", "cores", "hardware_threads", "numa_nodes")),
                "memory": {"total_bytes": None, "available_bytes": None}, "kernel": None,
                "hypervisor": None, "mitigations": None,
                "frequency": {"governor": None, "boost": None, "mhz": None},
                "pages": {"page_bytes": 4096, "transparent_huge_pages": None,
                          "huge_pages_total": None},
                "aslr": None, "allowed_cpus": None, "cgroup_cpu_quota": None, "load_average": None,
                "clock": {"source": None, "resolution_ns": None}}}


_HEALTH = ("involuntary_switches", "voluntary_switches", "migrations", "minor_faults",
           "major_faults", "steal_ticks", "huge_page_bytes", "frequency_mhz", "cpu")


def _digest(entry, what):
    """The same on every target."""
    return _identity({name: value for name, value in entry["point"].items()
                      if name in ("filter", "params", "keys")} | {"digest": what})


def _extra(point):
    if point["filter"] in ("classic_bloom", "km_bloom"):
        return {"bits": point["keys"] * point["params"].get("bits_per_key", 10.0)}
    return {"load": 0.95} if point["filter"] == "cuckoo" else {}


def make_samples(points):
    """One finished sample per point."""
    samples = []
    for sequence, entry in enumerate(points):
        time, fpr = entry["ns_per_op"], entry["fpr"]
        build = {name: entry[name] for name in ("build_ns_per_key", "build_ns_per_key_reason")
                 if name in entry}
        samples.append({
            "schema": "filterbench/sample/1", "sequence": sequence,
            "time_utc": "2026-11-30T15:20:01.123Z", "point_id": entry["point_id"],
            "point": entry["point"], "round": 0, "seed": 42, "status": entry["status"],
            "reason": entry["reason"], "ns_per_op": [time["median"]] if time else [],
            "operations_per_pass": 1 << 22, "iterations_per_pass": 16, "stream_lookups": 1 << 18,
            "positives": 131_200, "positives_expected": 131_200,
            "filter": build | {
                "size_bytes": entry["size_bytes"], "allocated_bytes": entry["size_bytes"],
                "peak_build_bytes": None, "peak_build_bytes_reason": "synthetic",
                "bits_per_key": entry["bits_per_key"], "distinct_keys": entry["point"]["keys"],
                "build_attempts": 1, "extra": _extra(entry["point"]),
                "filter_digest": _digest(entry, "filter"),
                "answers_digest": _digest(entry, "answers"), "hash_bits": 64} if time else None,
            "fpr": fpr | {"expected_instance_sd": None} if fpr else None,
            "health": dict.fromkeys(_HEALTH) if time else None})
    return samples


def repeat_samples(points, random, processes=3, builds=2, passes=3, noise=0.004, shift=0.0,
                   slower=None):
    """Samples as several processes give them, each of them and the whole run as much slower as the
    machine was (`shift`, a logarithm). `slower`: {filter: factor}."""
    samples, shifts = [], shift + random.normal(0, 0.01, processes)
    for process in range(processes):
        for build in range(builds):
            for sample in make_samples(points):
                name = sample["point"]["filter"]
                factor = (slower or {}).get(name, 1) * math.exp(
                    shifts[process] + random.normal(0, noise))
                held = sample["filter"]
                number = process * builds + build
                samples.append(sample | {
                    "sequence": len(samples), "process": process, "round": number, "seed": number,
                    "filter": held and held | {"filter_digest": f"{number:016x}",
                                               "answers_digest": f"{number:016x}"},
                    "ns_per_op": [time * factor * math.exp(random.normal(0, noise))
                                  for time in sample["ns_per_op"] for _ in range(passes)]})
    return samples


def write_run(directory, points, *, manifest=None, theory=None, complete=True, indent=1,
              samples=None):
    """Writes a run directory from entries of summary.json; returns its path. Run and machine are
    called as in `manifest`."""
    manifest = manifest or make_manifest()
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)

    def write(name, value):
        (directory / name).write_text(json.dumps(value, indent=indent, ensure_ascii=False) + "\n",
                                      encoding="utf-8")

    write("manifest.json", manifest)
    write("summary.json", {"schema": "filterbench/summary/1", "run": manifest["run"],
                           "machine": manifest["machine"], "spec": "synthetic", "points": points})
    write("theory.json", theory or make_theory(
        [n for n in dict.fromkeys(p["point"]["filter"] for p in points if "fill" not in p["point"])
         if n not in (*BASELINES, ALWAYS_MAYBE)]))
    with open(directory / "samples.jsonl", "w", encoding="utf-8") as file:
        for sample in make_samples(points) if samples is None else samples:
            file.write(json.dumps(sample, ensure_ascii=False) + "\n")
    if complete:
        (directory / "COMPLETE").touch()
    return directory


def tiny_points():
    """About what the spec smoke gives: two filters, one size."""
    return make_points(filters=("blocked_bloom", "cuckoo"), baselines=("touch_lines",),
                       bits_per_key=(10,), keys=(1000,), targets=("scalar", "avx2"), failing=False,
                       modes=("build", "lookup_batched", "lookup_reference"))


def smallest_points():
    """The least that every figure can be drawn from."""
    return tiny_points() + make_overfilled(
        filters=("blocked_bloom",), keys=1000, fills=(1.0, 2.0)) + make_filled_points(
            filters=("blocked_bloom", "cuckoo"), keys=1000, fills=(0.5, 1.0)) + make_gets(
                filters=("blocked_bloom", "cuckoo"), files=(7,),
                cases=((1.0, "any"), (0.0, "oldest")), keys=1000)


def main():
    parser = argparse.ArgumentParser(prog="plots.testing", description="Writes a synthetic run.")
    parser.add_argument("directory")
    parser.add_argument("--tiny", action="store_true", help="two filters, one size")
    arguments = parser.parse_args()
    write_run(arguments.directory, smallest_points() if arguments.tiny else full_points())


if __name__ == "__main__":
    main()
