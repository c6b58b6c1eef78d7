"""Which filter to take: the one with the least expected cost per lookup (plots/costs.py), from what
runs measured. Given to `filterbench advise` (scripts/advise.py), which reads runs and writes.

option      A filter with its parameters at the number of keys that is asked for, or no filter at
            all, which costs nothing to ask and lets every absent key through. Baselines are none.
run         Of several runs that have an option the one counts in which it is on firmest ground
            (basis), then the first. Runs come in the order that they are given in. The newest run
            that has a filter says which parameters it has: what an older program called otherwise
            cannot be told from it and is left out.
basis       measured      at this number of keys and share of negatives
            interpolated  between two measured places around the one asked for
            extrapolated  carried from the nearest one by the floor or by another point's ratio
                          (plots/carry.py), or from a share of negatives at most NEAR_SHARE away
            What is further off is left out, with the reason.
memory      All that fits may be taken. A filter whose size is a free number (bits_per_key) is also
            offered at the size that just fits, between the measured sizes around it: its FPR is
            that of the run's theory curve, if this agrees with both.
building    Counts only if it is asked for: ns per key over lookups per key.
"""

import dataclasses
import functools
import itertools
import json
import math

import numpy

from plots import carry, costs, ratios, selection, style
from plots.ratios import Measured

NO_FILTER = "no filter"
MODES = ("lookup_batched", "lookup_single", "latency")
NEEDS = ("insert", "erase", "grow")
NEAR_SHARE = 0.1
NEAR_SIZE = 0.05     # logarithm: from there on another parameter may have made the size
FLOOR_UNKNOWN = ", and the floor of a table for so many keys is not known"
OTHER_PARAMETERS = "a newer run has other parameters of this filter"
THEORY_AGREES = 1.15  # how far a curve of theory may lie from a measured interval

BASES = ("measured", "interpolated", "extrapolated")
_BASIS = {costs.MEASURED: "measured", costs.INTERPOLATED: "interpolated",
          costs.CARRIED: "extrapolated", costs.NEAREST: "extrapolated"}
_NOTHING = Measured(0.0, 0.0, 0.0)


@dataclasses.dataclass(frozen=True)
class Question:
    keys: int
    negatives: float
    miss_cost_ns: float
    memory_bytes: float = math.inf
    needs: tuple = ()
    mode: str = "lookup_batched"
    lookups_per_key: float | None = None  # None: building does not count


class Impossible(Exception):
    """Nothing can be advised; the text says what would be needed."""


@dataclasses.dataclass(frozen=True, eq=False)
class Option:
    """What plots/costs.py asks of a candidate, with building, and what else there is to say."""

    candidate: costs.Candidate
    run: object                 # plots.load.Run; None for no filter
    build: Measured             # ns per lookup; 0 where building does not count
    build_basis: str = "measured"
    sizes: tuple = ()           # the two sizes as asked for that it was interpolated between

    filter = property(lambda self: self.candidate.filter)
    variant = property(lambda self: self.candidate.variant)
    params = property(lambda self: self.candidate.params)
    fpr = property(lambda self: self.candidate.fpr)
    bits_per_key = property(lambda self: self.candidate.bits_per_key)
    size_bytes = property(lambda self: self.candidate.size_bytes)
    lookup = property(lambda self: self.candidate.ns)

    @functools.cached_property
    def ns(self):
        return Measured(*(a + b for a, b in zip(self.lookup, self.build)))

    @property
    def is_filter(self):
        return self.run is not None

    @property
    def basis(self):
        return max(_BASIS[self.candidate.keys_from], _BASIS[self.candidate.share_from],
                   self.build_basis, BASES[bool(self.sizes)], key=BASES.index)

    @property
    def firmness(self):
        """0 for what was measured just there."""
        return BASES.index(self.basis)

    @functools.cached_property
    def points(self):
        """The rows that the times are from."""
        points = self.run.points
        return points[points["point_id"].isin(self.candidate.point_ids)]

    @functools.cached_property
    def label(self):
        """The filter with those of its parameters that tell it from others of the run: the size as
        asked for where it is what made the size, and what else varies and is not derived."""
        if not self.is_filter:
            return NO_FILTER
        params = json.loads(self.params)
        asked = params.get("bits_per_key")
        short = []
        if isinstance(asked, (int, float)) and (
                abs(math.log(self.bits_per_key / asked)) < NEAR_SIZE or self._size_varies(params)):
            short.append(f"bits_per_key={selection.value_label(asked)}")
        preset = [text for text in self.points["params_label"] if text.startswith("preset=")]
        varying = preset[:1] or self.points["params_short"].iloc[0].split(", ")
        short += [text for text in varying if text and not text.endswith("=0")]
        return f"{self.filter} ({', '.join(short)})" if short else self.filter

    def _size_varies(self, params):
        """Whether the run has the same parameters with another bits_per_key."""
        points = self.run.points
        for text in points["params"][points["filter"] == self.filter].unique():
            other = json.loads(text)
            if other | {"bits_per_key": params["bits_per_key"]} == params != other:
                return True
        return False

    @property
    def grounds(self):
        """What the time is known from, where it was not measured just there."""
        candidate, parts = self.candidate, []
        for what, source, values in (
                ("keys", candidate.keys_from, candidate.measured_keys),
                ("a share of negatives of", candidate.share_from, candidate.measured_shares)):
            if source == costs.MEASURED:
                continue
            how = {costs.INTERPOLATED: "between", costs.CARRIED: "carried from",
                   costs.NEAREST: "as at"}[source]
            if what == "keys":
                there = "" if source == costs.INTERPOLATED else ", with the FPR that it has there"
                parts.append(f"{how} {' and '.join(map(style.count, values))} keys{there}")
            else:
                parts.append(f"{how} {what} {' and '.join(f'{value:g}' for value in values)}")
        if self.sizes:
            parts.append("between " + " and ".join(f"{bits:g}" for bits in self.sizes)
                         + " bits per key")
        if self.build_basis != "measured":
            parts.append(f"building {self.build_basis}")
        return "; ".join(parts)


@dataclasses.dataclass(frozen=True)
class LeftOut:
    filter: str
    reason: str
    labels: tuple = ()  # of the parameters; empty for all


@dataclasses.dataclass(frozen=True)
class Advice:
    question: Question
    runs: list
    options: list            # all that may be taken, by expected cost; no filter among them
    stretches: list          # costs.Stretch over all miss costs from 0 on
    left_out: list
    beyond_memory: Option | None  # what would cost less if there were more memory

    @property
    def winner(self):
        return self.options[0]

    @functools.cached_property
    def runner_up(self):
        return costs.runner_up(self.options, self.winner, self.question.negatives,
                               self.question.miss_cost_ns)

    def cost(self, option):
        return costs.expected_cost(option, self.question.negatives, self.question.miss_cost_ns)

    @property
    def within_noise(self):
        """Whether the measurements do not tell winner and runner-up apart; None if not known."""
        return self._within_noise(self.runner_up)

    def _within_noise(self, option):
        return costs.within_noise(self.winner, option, self.question.negatives,
                                  self.question.miss_cost_ns)

    @functools.cached_property
    def as_good(self):
        """What else may be the best, as far as the intervals tell."""
        return [option for option in self.options[1:] if self._within_noise(option)]

    @property
    def basis(self):
        return max(self.winner.basis, self.runner_up.basis, key=BASES.index)

    def best_of_both(self, other):
        """(best here, best there, how many) of the filters that both advices know with the same
        parameters; None if there is none."""
        known = {(option.filter, option.params) for option in other.options}
        common = {(option.filter, option.params) for option in self.options
                  if option.is_filter} & known
        if not common:
            return None
        here, there = (next(option for option in advice.options if not option.is_filter
                            or (option.filter, option.params) in common)
                       for advice in (self, other))
        return here, there, len(common)

    @functools.cached_property
    def break_evens(self):
        """[(cheap, precise, miss cost)] where the winner changes."""
        return [(a.candidate, b.candidate, costs.break_even(
            a.candidate, b.candidate, self.question.negatives) or Measured(a.high_ns))
                for a, b in zip(self.stretches, self.stretches[1:])]


# --- Options ---

def no_filter(question):
    return Option(costs.Candidate(
        filter=NO_FILTER, variant="", params="{}", params_label="", target="", keys=question.keys,
        negative_share=question.negatives, ns=_NOTHING, fpr=Measured(1.0, 1.0, 1.0),
        bits_per_key=0.0, size_bytes=0.0, keys_from=costs.MEASURED, share_from=costs.MEASURED,
        fpr_from=costs.MEASURED, measured_keys=(), measured_shares=(), point_ids=()),
                  run=None, build=_NOTHING)


def _build_ns_per_key(run, candidate):
    """(ns per key, basis) of building at the key count that is asked for, or None: log time linear
    in log keys, beyond the measured counts as at the nearest."""
    rows = run.points[(run.points["filter"] == candidate.filter) & (run.points["status"] == "ok")
                      & (run.points["params"] == candidate.params)]
    timed = rows[(rows["mode"] == "build") & rows["ns_per_op"].notna()]
    times = {row["keys"]: ratios.time(row) for _, row in timed.iterrows()}
    if not times:  # a lookup's filter was built once, which gives no interval
        times = {keys: Measured(float(here.median())) for keys, here in
                 rows["build_ns_per_key"].groupby(rows["keys"]) if here.notna().any()}
    if not times:
        return None
    counts = sorted(times)
    if candidate.keys in times:
        return times[candidate.keys], "measured"
    above = sum(count < candidate.keys for count in counts)
    if above in (0, len(counts)):
        return times[counts[min(above, len(counts) - 1)]], "extrapolated"
    low, high = counts[above - 1], counts[above]
    weight = math.log(candidate.keys / low) / math.log(high / low)
    return Measured(*(math.exp((1 - weight) * math.log(a) + weight * math.log(b))
                      for a, b in zip(times[low], times[high]))), "interpolated"


def _too_far(candidate, question):
    """Why nothing is known of the candidate's time at the place that is asked for, or None."""
    if candidate.keys_from == costs.NEAREST:
        keys = candidate.measured_keys[0]
        return (f"measured up to {style.count(keys)} keys" if keys < question.keys
                else f"measured from {style.count(keys)} keys on") + FLOOR_UNKNOWN
    if candidate.share_from == costs.NEAREST and max(
            abs(share - question.negatives) for share in candidate.measured_shares) > NEAR_SHARE:
        shares = ", ".join(f"{share:g}" for share in candidate.measured_shares)
        return f"no share of negatives was measured near {question.negatives:g} (only {shares})"
    return None


def _options_of(run, question, left_out):
    carrier = carry.Carry(run, question.mode, question.negatives)
    everything = (costs.MEASURED, costs.INTERPOLATED, costs.CARRIED, costs.NEAREST)
    found = []
    for candidate in costs.candidates(run, question.keys, question.negatives, keys_from=everything,
                                      mode=question.mode, carry=carrier):
        reason = _too_far(candidate, question)
        build, basis = _NOTHING, "measured"
        if reason is None and question.lookups_per_key is not None:
            known = _build_ns_per_key(run, candidate)
            if known is None:
                reason = "the time to build it was not measured"
            else:
                build = Measured(*(end / question.lookups_per_key for end in known[0]))
                basis = known[1]
        if reason is None:
            found.append(Option(candidate, run, build, basis))
        else:
            left_out.append((candidate, reason))
    return found


def _parameter_names(runs):
    """{filter: the sets of names that its parameters have in the newest run that has it}."""
    names = {}
    for run in sorted(runs, key=lambda run: run.name):
        newest = {}
        for name, params in run.points[["filter", "params"]].drop_duplicates().itertuples(
                index=False):
            newest.setdefault(name, set()).add(frozenset(json.loads(params)))
        names |= newest
    return names


def _gather(runs, question):
    """(options by (filter, params), [(candidate, reason)] of those that have none)."""
    best, lost, names = {}, [], _parameter_names(runs)
    for run in runs:
        for option in _options_of(run, question, lost):
            key = option.filter, option.params
            if frozenset(json.loads(option.params)) not in names[option.filter]:
                lost.append((option.candidate, OTHER_PARAMETERS))
                continue
            if key not in best or option.firmness < best[key].firmness:
                best[key] = option
    return best, [(candidate, reason) for candidate, reason in lost
                  if (candidate.filter, candidate.params) not in best]


def _theory_fpr(option, other, bits_per_key):
    """The FPR of theory at a size between two options of one filter; None if the run has no curve
    that agrees with both."""
    theory = option.run.theory
    for _, curve in theory[theory["filter"] == option.filter].groupby("curve"):
        curve = curve.sort_values("bits_per_key")
        bits, logs = curve["bits_per_key"].to_numpy(), numpy.log(curve["fpr"].to_numpy())
        def at(place, bits=bits, logs=logs):
            inside = bits[0] <= place <= bits[-1]
            return math.exp(numpy.interp(place, bits, logs)) if inside else math.nan
        if all(row.fpr.low / THEORY_AGREES <= at(row.bits_per_key) <= row.fpr.high * THEORY_AGREES
               for row in (option, other)):
            return at(bits_per_key)
    return None


def _that_just_fit(options, question):
    """Options of the largest size that fits, of filters whose size is a free number."""
    if math.isinf(question.memory_bytes):
        return []
    families = {}
    for option in options:
        params = json.loads(option.params)
        if isinstance(params.get("bits_per_key"), (int, float)):
            others = json.dumps({k: v for k, v in params.items() if k != "bits_per_key"},
                                sort_keys=True)
            families.setdefault((option.filter, others, option.run.name), []).append(option)
    most_bits = 8 * question.memory_bytes / question.keys
    found = []
    for members in families.values():
        members.sort(key=lambda option: option.bits_per_key)
        for low, high in zip(members, members[1:]):
            if not low.bits_per_key < most_bits < high.bits_per_key:
                continue
            params = json.loads(low.params)
            sizes = params["bits_per_key"], json.loads(high.params)["bits_per_key"]
            more = low.bits_per_key / params["bits_per_key"]  # blocks, headers
            params["bits_per_key"] = math.floor(100 * most_bits / more) / 100
            bits = params["bits_per_key"] * more
            fpr = _theory_fpr(low, high, bits) if bits > low.bits_per_key else None
            if fpr is not None:
                text = json.dumps(params, sort_keys=True, ensure_ascii=False,
                                  separators=(",", ":"))
                candidate = costs.between(low.candidate, high.candidate, text, bits, fpr)
                found.append(dataclasses.replace(
                    low, candidate=candidate, sizes=sizes,
                    build=Measured(*(max(a, b) for a, b in zip(low.build, high.build))),
                    build_basis=max(low.build_basis, high.build_basis, key=BASES.index)))
    return found


# --- What a filter can do ---

def able(catalogue, needs):
    """The names in the catalogue (`filterbench list --json`) of filters that can do all of
    `needs`."""
    return {entry["name"] for entry in catalogue["filters"]
            if not entry["is_baseline"] and all(entry[need] for need in needs)}


# --- The answer ---

def _measure(question, filters=()):
    chosen = "".join(f" --filter {name}" for name in filters)
    shares = sorted({question.negatives, 1.0})
    return (f"filterbench run families --set keys={question.keys} "
            f"--set negative_shares={','.join(f'{share:g}' for share in shares)} "
            f"--set modes=build,{question.mode}{chosen}")


def _left_out_by_reason(lost):
    grouped = {}
    for candidate, reason in lost:
        label = candidate.params_label or candidate.params
        grouped.setdefault((candidate.filter, reason), []).append(label)
    return [LeftOut(name, reason, tuple(dict.fromkeys(labels)))
            for (name, reason), labels in sorted(grouped.items())]


def _with_fewer_needs(catalogue, needs):
    """Who can do as many of `needs` as any filter can."""
    for count in range(len(needs) - 1, 0, -1):
        found = {some: able(catalogue, some) for some in itertools.combinations(needs, count)}
        texts = [f"--needs {','.join(some)} leaves {', '.join(sorted(names))}"
                 for some, names in found.items() if names]
        if texts:
            return "; " + "; ".join(texts)
    return ""


def _check_abilities(question, runs, catalogue):
    """Names of the filters that may be taken; None for all. Raises Impossible."""
    if not question.needs:
        return None
    names = able(catalogue, question.needs)
    words = " and ".join(question.needs)
    if not names:
        raise Impossible(f"no filter of the catalogue can {words}"
                         + _with_fewer_needs(catalogue, question.needs))
    measured = {name for run in runs for name in run.points["filter"]}
    if not names & measured:
        raise Impossible(f"of the filters that can {words} ({', '.join(sorted(names))}) no run has "
                         f"one; to measure them: {_measure(question, sorted(names))}")
    return names


def advise(runs, question, catalogue=None):
    """The Advice. `catalogue` is needed for needs. Raises Impossible."""
    names = _check_abilities(question, runs, catalogue)
    best, lost = _gather(runs, question)
    if names is not None:
        best = {key: option for key, option in best.items() if option.filter in names}
        lost = [(candidate, reason) for candidate, reason in lost if candidate.filter in names]
    left_out = _left_out_by_reason(lost)
    if not best:
        why = "; ".join(f"{entry.filter}: {entry.reason}" for entry in left_out[:3])
        able_to = f" that can {' and '.join(question.needs)}" if question.needs else ""
        raise Impossible(
            f"nothing is known of {style.count(question.keys)} keys in mode {question.mode} of a "
            f"filter{able_to}{f' ({why})' if why else ''}; to measure it: "
            f"{_measure(question, sorted(names or ()))}")
    fitting = [option for option in best.values() if option.size_bytes <= question.memory_bytes]
    fitting += _that_just_fit(list(best.values()), question)
    if not fitting:
        least = min(best.values(), key=lambda option: option.size_bytes)
        raise Impossible(
            f"no filter fits: the smallest, {least.label}, takes {least.size_bytes:.0f} bytes for "
            f"{style.count(question.keys)} keys ({least.bits_per_key:.3g} bits per key), the limit "
            f"is {question.memory_bytes:.0f}")
    options = costs.ranking([*fitting, no_filter(question)], question.negatives,
                            question.miss_cost_ns)
    too_large = [option for option in best.values() if option.size_bytes > question.memory_bytes]
    return Advice(
        question, runs, options, costs.winners(options, question.negatives, 0.0, math.inf),
        left_out, _cheaper(too_large, options[0], question))


def _cheaper(too_large, winner, question):
    ranked = costs.ranking([*too_large, winner], question.negatives, question.miss_cost_ns)
    return ranked[0] if ranked[0] is not winner else None
