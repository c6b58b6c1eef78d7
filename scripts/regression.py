"""The statistics of `filterbench compare`: whether B is worse than A, from numbers alone.

Times. The unit of repetition is the process, a fresh start of the program (where both sides have two
runs or more: the run). Builds and passes inside a unit share its address layout and its minute, so
a unit gives one value: the mean over its builds of the logarithm of the median pass.

  1. The machine. Two runs of one program differ, since the machine was not equally fast. Points that
     measure the machine (`touch_lines`, `hash_only`) tell by how much, unit by unit and separately
     for each mode and cache level; every row is divided by that. The middle filter tells it too. A
     row counts as changed if it is by both measures. Their uncertainty needs no formula of its own:
     it is in the spread of the corrected units.
  2. The spread of a row over few units is itself uncertain. All rows together say which spreads are
     usual, and each row's is drawn towards that (Smyth 2004, Linear models and empirical Bayes
     methods, Statistical Applications in Genetics and Molecular Biology 3).
  3. What differs between two runs but not between the processes of one is seen in the scatter of the
     rows' ratios: what they scatter more than their spreads explain is added to every row's variance.
     Its size comes from the middle of the rows, so a change of fewer than half of them does not hide.
  4. A row is worse if t beyond the minimum effect says so (McCarthy and Smyth 2009, Testing
     significance relative to a fold-change threshold is a TREAT, Bioinformatics 25).
  5. The middle of all rows of a filter is tested like a row: it finds what is too small for any row.

False-positive rates: the exact conditional test of two counts (given their sum, one is binomial;
Przyborowski and Wilenski 1940), and where filters of different seeds have different rates, a score
test with that variance too, where theory says it, else Student's of the builds' own rates; the larger
p counts. Sizes are compared as they are where the seeds are
the same, since nothing is left to chance then.

All tests of a comparison are one family: Holm's step-down procedure (Scandinavian Journal of
Statistics 6, 1979) keeps the chance of any false alarm at 5 %, whatever depends on what.
"""

import dataclasses
import math
import warnings

import numpy
from scipy import special, stats

WORSE, BETTER, SAME, UNDECIDED = "worse", "better", "same", "undecided"
CONFIDENCE = 0.95       # of the interval of one row, without regard to the others
FOUND_CHANCE = 0.8      # with which a slow-down of the stated size is found
# Logarithms: what a clock and a median of some passes cannot tell apart.
_LEAST_VARIANCE = 1e-8
# Spreads of other rows count for this many degrees of freedom at most: rows are not independent.
_MOST_PRIOR_DF = 20.0
# Fewer rows do not show how far ratios scatter.
_LEAST_ROWS_FOR_SCATTER = 10
_LEAST_FILTERS_AS_REFERENCE = 3
_LEAST_ROWS_OF_A_FILTER = 3
_LEAST_FILTERS_THAT_TELL = 5
_LARGEST_LOG = 300.0  # of a factor, far from where exp() overflows
_REPETITIONS = numpy.array([*range(2, 21), *range(22, 50, 4), *range(50, 200, 10), 250, 500, 1000])


@dataclasses.dataclass(frozen=True)
class Limits:
    """Changes below these, relative to A, are none."""

    ns: float = 0.02
    fpr: float = 0.02
    bits: float = 0.001
    alpha: float = 0.05


@dataclasses.dataclass
class Finding:
    """One quantity of one row."""

    a: float
    b: float
    ratio: float = math.nan       # B over A; of times, corrected for the machine
    low: float = math.nan         # 95 % interval of the ratio
    high: float = math.nan
    raw_ratio: float = math.nan   # of times, as measured
    reference: str | None = None  # of times: what the machine's speed was taken from
    p_worse: float | None = None  # None: cannot be tested, `reason` says why
    p_better: float | None = None
    p_adjusted: float | None = None
    verdict: str = UNDECIDED
    reason: str | None = None
    needed: int | None = None     # repetitions a side that would decide
    finds: float = math.nan       # slow-down that would be found with FOUND_CHANCE
    error: float = math.nan       # standard error of the logarithm of the ratio, of times: the
                                  # greatest by any reference, since all must agree
    df: float = math.nan          # its degrees of freedom
    references: int = 1           # that must agree


def holm(p_values):
    """The adjusted p-values: those at most alpha are rejected with a chance of any false rejection
    of at most alpha."""
    p_values = numpy.asarray(p_values, float)
    order = numpy.argsort(p_values, kind="stable")
    scaled = p_values[order] * (len(p_values) - numpy.arange(len(p_values)))
    adjusted = numpy.empty_like(p_values)
    adjusted[order] = numpy.minimum(1, numpy.maximum.accumulate(scaled))
    return adjusted


# --- Times ---

@dataclasses.dataclass(frozen=True)
class Row:
    """What of a point decides how it is compared."""

    filter: str
    mode: str
    cache_level: int    # the table fits into this level of the caches; beyond all: one more
    is_baseline: bool   # measures the machine
    builds: bool        # its time is that of building


def _inverse_trigamma(value):
    """x with trigamma(x) = value > 0, by Newton's method on its reciprocal (Smyth 2004, appendix)."""
    if value > 1e7:
        return 1 / math.sqrt(value)
    if value < 1e-6:
        return 1 / value
    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = special.polygamma(1, x)
        step = trigamma * (1 - trigamma / value) / special.polygamma(2, x)
        x += step
        if -step / x < 1e-8:
            break
    return float(x)


def prior_of_variances(variances, dfs):
    """(degrees of freedom, variance) of the law that rows' variances come from: s^2 of a row is
    s0^2 F(df, d0) (Smyth 2004, section 6.2)."""
    known = dfs > 0
    if known.sum() < 3:
        return 0.0, math.nan
    variances, dfs = variances[known], dfs[known]
    e = numpy.log(variances) - special.digamma(dfs / 2) + numpy.log(dfs / 2)
    spread = numpy.var(e, ddof=1) - numpy.mean(special.polygamma(1, dfs / 2))
    if spread <= 0:
        return _MOST_PRIOR_DF, math.exp(numpy.mean(e) + special.digamma(_MOST_PRIOR_DF / 2)
                                        - math.log(_MOST_PRIOR_DF / 2))
    prior_df = min(_MOST_PRIOR_DF, 2 * _inverse_trigamma(spread))
    return prior_df, math.exp(numpy.mean(e) + special.digamma(prior_df / 2)
                              - math.log(prior_df / 2))


def excess_variance(residuals, variances, dfs):
    """tau^2 by which residuals scatter more than N(0, variance) does: the median of
    residual^2 / (variance + tau^2) becomes that of F(1, df). 0 where they do not."""
    if len(residuals) < _LEAST_ROWS_FOR_SCATTER:
        return 0.0
    expected = stats.f.ppf(0.5, 1, dfs)

    def median_at(tau2):
        return numpy.median(residuals**2 / (variances + tau2) / expected)

    if median_at(0.0) <= 1:
        return 0.0
    low, high = 0.0, float(numpy.max(residuals**2 / expected))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if median_at(middle) > 1 else (low, middle)
    return high


def _nan_median(values, axis):
    """numpy.nanmedian, without its warning where all are NaN."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return numpy.nanmedian(values, axis=axis)


def _mean(values):
    """Means over axis 1, NaN left out; NaN where nothing is left."""
    count = numpy.sum(~numpy.isnan(values), axis=1)
    with numpy.errstate(all="ignore"):
        return numpy.nansum(values, axis=1) / numpy.where(count > 0, count, numpy.nan)


class _Machine:
    """How fast the machine was in each unit, for the rows of a mode and cache level."""

    def __init__(self, y, is_b, rows):
        self._rows = rows
        centre = (_mean(y[:, ~is_b]) + _mean(y[:, is_b])) / 2
        self._deviation = y - centre[:, None]
        self._measured = ~numpy.isnan(centre)

    def _members(self, row, baselines):
        """Rows that may tell the machine's speed for `row`, by how near they are: those of its mode
        and cache level, of its mode, all."""
        alike = [i for i, other in enumerate(self._rows)
                 if self._measured[i] and other.is_baseline == baselines
                 and other.builds == (row.builds and not baselines)]
        in_mode = [i for i in alike if self._rows[i].mode == row.mode]
        in_place = [i for i in in_mode if self._rows[i].cache_level == row.cache_level]
        # A baseline's building is memory being cleared: no measure of how filters are built.
        return [("of its mode and cache level", in_place), ("of its mode", in_mode), ("", alike)]

    def _by_baselines(self, index):
        row = self._rows[index]
        for where, members in self._members(row, baselines=True):
            members = [i for i in members if i != index]
            if len(members) >= (2 if row.is_baseline else 1):
                return f"baselines {where}".strip(), _nan_median(self._deviation[members], 0)
        return None

    def _by_filters(self, index):
        row = self._rows[index]
        for where, members in self._members(row, baselines=False):
            filters = sorted({self._rows[i].filter for i in members})
            if not row.is_baseline and len(filters) >= _LEAST_FILTERS_AS_REFERENCE:
                by_filter = [_nan_median(self._deviation[[i for i in members
                                                          if self._rows[i].filter == name]], 0)
                             for name in filters]
                return (f"the middle filter {where}".strip(),
                        _nan_median(numpy.array(by_filter), 0))
        return None

    def references(self, of):
        """[(what it is, shift of every unit)] for the rows; (None, zeros) where nothing serves. `of`
        is "baselines" or "filters"."""
        cache = {}
        for index, row in enumerate(self._rows):
            key = (row.mode, row.cache_level, row.builds, index if row.is_baseline else None)
            if key not in cache:
                found = (self._by_baselines if of == "baselines" else self._by_filters)(index)
                cache[key] = found or (None, numpy.zeros(self._deviation.shape[1]))
            yield cache[key]


def log_times(nested):
    """One unit's value of a row: `nested` has for each build its passes."""
    return float(numpy.mean([math.log(float(numpy.median(passes))) for passes in nested]))


@dataclasses.dataclass
class Times:
    findings: list
    prior_df: float
    scatter: float             # tau: relative scatter of ratios between runs that spreads do not explain
    unit: str                  # "process" or "run"
    filters: dict              # {filter: Finding}: the middle of all its rows
    groups: list               # (mode, cache level, filters' ratio to the baselines, its low, its high)


class _View:
    """The rows' differences B - A of logarithms, corrected by one kind of reference."""

    def __init__(self, y, is_b, rows, references, limits, tau2=None):
        self.names = [name for name, _ in references]
        corrected = y - numpy.array([shift for _, shift in references]).reshape(y.shape)
        a, b = corrected[:, ~is_b], corrected[:, is_b]
        self.count_a, self.count_b = ((~numpy.isnan(side)).sum(axis=1) for side in (a, b))
        self.difference = _mean(b) - _mean(a)
        self.deviation = corrected - ((_mean(a) + _mean(b)) / 2)[:, None]
        dfs = numpy.maximum(self.count_a - 1, 0) + numpy.maximum(self.count_b - 1, 0)
        squares = (numpy.nansum((a - _mean(a)[:, None])**2, axis=1)
                   + numpy.nansum((b - _mean(b)[:, None])**2, axis=1))
        self.testable = (self.count_a >= 2) & (self.count_b >= 2)
        with numpy.errstate(all="ignore"):
            variances = numpy.maximum(squares / dfs, _LEAST_VARIANCE)
            self.prior_df, prior_variance = prior_of_variances(variances[self.testable],
                                                               dfs[self.testable])
            self.variance = variances if self.prior_df == 0 else (
                (self.prior_df * prior_variance + dfs * variances) / (self.prior_df + dfs))
            weight = 1 / self.count_a + 1 / self.count_b
        self.df = numpy.where(self.testable, dfs + self.prior_df, 1)
        self.tau2 = self._scatter(rows, self.variance * weight) if tau2 is None else tau2
        with numpy.errstate(all="ignore"):
            self.error = numpy.sqrt(self.variance * weight + self.tau2)
            half = stats.t.ppf((1 + CONFIDENCE) / 2, self.df) * self.error
            self.low, self.high = self.difference - half, self.difference + half
            least = math.log1p(limits.ns)
            self.p_worse = stats.t.sf((self.difference - least) / self.error, self.df)
            self.p_better = stats.t.cdf((self.difference + least) / self.error, self.df)
            self.needed = _needed(self.variance, self.tau2, self.prior_df, least)

    def _scatter(self, rows, variances):
        is_filter = numpy.array([not row.is_baseline for row in rows], bool)
        own = numpy.flatnonzero(self.testable & is_filter)
        if not len(own):
            return 0.0
        centred = self.difference - numpy.median(self.difference[own])
        groups = {}
        for index in own:
            groups.setdefault((rows[index].mode, rows[index].cache_level), []).append(index)
        for members in groups.values():
            if len({rows[i].filter for i in members}) >= _LEAST_FILTERS_AS_REFERENCE:
                centred[members] = self.difference[members] - numpy.median(self.difference[members])
        return excess_variance(centred[own], variances[own], self.df[own])


def compare_times(y, is_b, rows, limits, unit="process"):
    """`y` has a row for each of `rows` and a column for each unit, as log_times gives them, NaN where
    there is none; `is_b` tells which columns are B's. Verdicts are left to decide().

    With one run on a side a row must differ from what the baselines say and from what the middle
    filter says, where there are both: what moves all filters alike is the machine, or a change that
    only several runs a side can tell from it."""
    y, is_b = numpy.asarray(y, float), numpy.asarray(is_b, bool)
    machine = _Machine(y, is_b, rows)
    # Where runs are the unit, what differs from run to run is in their spread already.
    views = [_View(y, is_b, rows, list(machine.references("baselines")), limits,
                   tau2=0.0 if unit == "run" else None)]
    if unit == "process":
        views.append(_View(y, is_b, rows, list(machine.references("filters")), limits))
    mean_a, mean_b = _mean(y[:, ~is_b]), _mean(y[:, is_b])

    findings = []
    for i, row in enumerate(rows):
        usable = [view for view in views if view.names[i] is not None]
        view = min(usable or views, key=lambda view: abs(view.difference[i]))
        finding = Finding(a=math.exp(mean_a[i]), b=math.exp(mean_b[i]),
                          ratio=math.exp(view.difference[i]),
                          raw_ratio=math.exp(mean_b[i] - mean_a[i]), reference=view.names[i])
        findings.append(finding)
        if not view.testable[i]:
            fewest = min(view.count_a[i], view.count_b[i])
            finding.reason = (f"{fewest} {unit} on a side says nothing about others: at least 2 are "
                              f"needed")
            continue
        finding.low, finding.high = math.exp(view.low[i]), math.exp(view.high[i])
        # Several runs on each side carry the machine in their spread; one on each does not.
        if not usable and unit == "process":
            finding.reason = ("is itself what the machine's speed is taken from" if row.is_baseline
                              else "nothing in the runs tells how fast the machine was: sweep "
                                   "touch_lines and hash_only too, or give several runs a side")
            continue
        _set_error(finding, usable or views, i)
        finding.needed = int(view.needed[i]) or None
        finding.p_worse = max(float(other.p_worse[i]) for other in usable or views)
        finding.p_better = max(float(other.p_better[i]) for other in usable or views)
    return Times(findings, views[0].prior_df, math.sqrt(max(view.tau2 for view in views)), unit,
                 _filters(views, is_b, rows, limits, mean_b - mean_a), _groups(views[0], rows))


def _set_error(finding, views, i):
    widest = max(views, key=lambda view: view.error[i])
    finding.error, finding.df = float(widest.error[i]), float(widest.df[i])
    finding.references = len(views)


def _shared_scatter(view, members):
    """tau^2 for the middles of filters' rows: what rows scatter by between runs is less in their
    middle only if rows of one filter do not share it, and the spread of the middles tells. All of it
    where there are too few filters to tell."""
    of_middle = math.pi / 2 * view.tau2 / min(len(indices) for indices in members)
    if len(members) < _LEAST_FILTERS_THAT_TELL:
        return max(view.tau2, of_middle)
    middles = numpy.array([numpy.median(view.difference[indices]) for indices in members])
    spread = stats.median_abs_deviation(middles, scale="normal")**2
    return of_middle + min(view.tau2, spread)


def _filters(views, is_b, rows, limits, raw):
    """Whether a filter changed in the middle of its rows. What rows differ by at random is less in
    their middle, so small changes are found that no single row shows."""
    members = {}
    for i, row in enumerate(rows):
        if not row.is_baseline and all(view.testable[i] for view in views):
            members.setdefault(row.filter, []).append(i)
    members = {name: indices for name, indices in members.items()
               if len(indices) >= _LEAST_ROWS_OF_A_FILTER}
    usable = [view for view in views
              if all(view.names[i] is not None for indices in members.values() for i in indices)]
    if not members or not usable:
        return {}
    heads = [Row(name, "", 0, False, False) for name in members]
    middles = [_View(numpy.array([_nan_median(view.deviation[indices], 0)
                                  for indices in members.values()]),
                     is_b, heads, [("all points of the filter", numpy.zeros(len(is_b)))] * len(heads),
                     limits, tau2=_shared_scatter(view, list(members.values())))
               for view in usable]
    found = {}
    for i, name in enumerate(members):
        view = min(middles, key=lambda view: abs(view.difference[i]))
        if not view.testable[i]:
            continue
        found[name] = Finding(
            a=1.0, b=math.exp(view.difference[i]), ratio=math.exp(view.difference[i]),
            raw_ratio=math.exp(numpy.median(raw[members[name]])), reference=view.names[i], low=math.exp(view.low[i]),
            high=math.exp(view.high[i]), needed=int(view.needed[i]) or None,
            p_worse=max(float(other.p_worse[i]) for other in middles),
            p_better=max(float(other.p_better[i]) for other in middles))
        _set_error(found[name], middles, i)
    return found


def _groups(view, rows):
    """How the filters of a mode and cache level moved against the baselines, as a whole."""
    members = {}
    for i, row in enumerate(rows):
        if not row.is_baseline and view.testable[i] and view.names[i] is not None:
            members.setdefault((row.mode, row.cache_level), []).append(i)
    found = []
    for (mode, level), indices in sorted(members.items()):
        if len({rows[i].filter for i in indices}) >= _LEAST_FILTERS_AS_REFERENCE:
            found.append((mode, level, *(math.exp(numpy.median(ends[indices])) for ends in (
                view.difference, view.low, view.high))))
    return found


def _needed(variances, tau2, prior_df, least):
    """Repetitions a side with which the interval of a row would be as narrow as the minimum effect
    on each side; 0 where no number helps."""
    half = (stats.t.ppf((1 + CONFIDENCE) / 2, 2 * _REPETITIONS - 2 + prior_df)
            * numpy.sqrt(2 * numpy.asarray(variances)[:, None] / _REPETITIONS + tau2))
    good = half <= least
    return numpy.where(good.any(axis=1), _REPETITIONS[numpy.argmax(good, axis=1)], 0)


def whole_shift(y, is_b, rows, limits):
    """Finding of the baselines alone, with runs as units: a change that all rows share, floors
    included. None where there are fewer than three runs on a side or no baselines."""
    members = [i for i, row in enumerate(rows) if row.is_baseline and not row.builds]
    is_b = numpy.asarray(is_b, bool)
    y = numpy.asarray(y, float)
    if min(is_b.sum(), (~is_b).sum()) < 3 or not members:
        return None
    centre = (_mean(y[:, ~is_b]) + _mean(y[:, is_b])) / 2
    shift = _nan_median((y - centre[:, None])[members], 0)
    a, b = shift[~is_b], shift[is_b]
    if numpy.isnan(shift).any():
        return None
    df = len(shift) - 2
    variance = max((numpy.sum((a - a.mean())**2) + numpy.sum((b - b.mean())**2)) / df,
                   _LEAST_VARIANCE)
    difference = float(b.mean() - a.mean())
    error = math.sqrt(variance * (1 / len(a) + 1 / len(b)))
    half = stats.t.ppf((1 + CONFIDENCE) / 2, df) * error
    least = math.log1p(limits.ns)
    return Finding(a=math.exp(a.mean()), b=math.exp(b.mean()), ratio=math.exp(difference),
                   raw_ratio=math.exp(difference), df=df, error=error, reference="the runs' own spread",
                   low=math.exp(difference - half), high=math.exp(difference + half),
                   needed=int(_needed([variance], 0.0, 0.0, least)[0]) or None,
                   p_worse=float(stats.t.sf((difference - least) / error, df)),
                   p_better=float(stats.t.cdf((difference + least) / error, df)))


# --- Rates and sizes ---

@dataclasses.dataclass(frozen=True)
class Build:
    """One filter that was built and asked."""

    seed: int
    digest: str | None
    bits_per_key: float
    false_positives: float = math.nan
    queries: float = math.nan
    instance_sd: float = math.nan  # of the rate between seeds, by theory; NaN where unknown


def _same_filters(a, b):
    """Whether both sides built the same filters, byte by byte."""
    def of(builds):
        return {build.seed: build.digest for build in builds}
    return None not in of(a).values() and of(a) == of(b)


def compare_rates(a, b, limits):
    """False-positive rates of builds that have counts. None where a side has none."""
    a, b = ([build for build in side if not math.isnan(build.queries)] for side in (a, b))
    if not a or not b:
        return None
    (k_a, n_a), (k_b, n_b) = ((sum(build.false_positives for build in side),
                               sum(build.queries for build in side)) for side in (a, b))
    rate_a, rate_b = k_a / n_a, k_b / n_b
    finding = Finding(a=rate_a, b=rate_b)
    if _same_filters(a, b) and (k_a, n_a) == (k_b, n_b):
        finding.ratio = finding.low = finding.high = 1.0
        finding.p_worse = finding.p_better = 1.0
        return finding
    if k_a + k_b == 0:
        finding.reason = f"no false positive in {n_a + n_b:.0f} queries"
        finding.p_worse = finding.p_better = 1.0
        return finding
    finding.ratio = rate_b / rate_a if k_a else math.inf
    spread = _spread_of_builds(a, b, rate_a, rate_b)
    if spread is None:
        finding.reason = ("how far the rates of filters of other seeds lie apart is unknown, and "
                          "each side has one build")
        return finding
    variance, df, has_counting = spread

    def p_value(least, worse):
        share = n_b * least / (n_a + n_b * least)
        total = k_a + k_b
        exact = (stats.binom.sf(k_b - 1, total, share) if worse
                 else stats.binom.cdf(k_b, total, share))
        pooled = total / (n_a + n_b)
        counting = 0.0 if has_counting else pooled * (1 - pooled) * (1 / n_b + least**2 / n_a)
        error = math.sqrt(counting + variance * (1 / len(b) + least**2 / len(a)))
        if variance == 0 or error == 0:
            return float(exact)
        score = (rate_b - least * rate_a) / error
        return float(max(exact, stats.t.sf(score if worse else -score, df)))

    finding.p_worse = p_value(1 + limits.fpr, True)
    finding.p_better = p_value(1 / (1 + limits.fpr), False)
    finding.low, finding.high = _ratio_of_counts(k_a, n_a, k_b, n_b)
    if variance > 0 and k_a and k_b:
        extra = stats.t.ppf((1 + CONFIDENCE) / 2, df) * math.sqrt(
            variance * (1 / (len(a) * rate_a**2) + 1 / (len(b) * rate_b**2)))
        low, high = (math.log(finding.ratio / finding.low), math.log(finding.high / finding.ratio))
        together = max if has_counting else math.hypot
        finding.low = finding.ratio / math.exp(min(together(low, extra), _LARGEST_LOG))
        finding.high = finding.ratio * math.exp(min(together(high, extra), _LARGEST_LOG))
    return finding


def _ratio_of_counts(k_a, n_a, k_b, n_b):
    """Interval of the ratio of two rates: Clopper and Pearson's, of B's share in all."""
    total, tail = k_a + k_b, (1 - CONFIDENCE) / 2
    low = stats.beta.ppf(tail, k_b, total - k_b + 1) if k_b else 0.0
    high = stats.beta.ppf(1 - tail, k_b + 1, total - k_b) if k_a else 1.0
    ratio = [share / (1 - share) * n_a / n_b if share < 1 else math.inf for share in (low, high)]
    return float(ratio[0]), float(ratio[1])


def _spread_of_builds(a, b, rate_a, rate_b):
    """(variance of the rate of a build, degrees of freedom of its estimate, whether it holds what
    counting adds). Between seeds alone where theory says so; else what the builds differ by, of
    which counting is a part: taken off, it would leave nothing by chance, and an interval that
    covers 90 %. None where one build a side says nothing."""
    known = [build.instance_sd for build in (*a, *b)]
    if not any(math.isnan(sd) for sd in known):
        return float(numpy.mean(numpy.square(known))), math.inf, False
    df = len(a) + len(b) - 2
    if df <= 0:
        return None
    squares = sum((build.false_positives / build.queries - rate)**2
                  for side, rate in ((a, rate_a), (b, rate_b)) for build in side)
    return squares / df, df, True


def compare_sizes(a, b, limits):
    """Bits per key of builds. None where a side has none."""
    a, b = ([build for build in side if not math.isnan(build.bits_per_key)] for side in (a, b))
    if not a or not b:
        return None
    bits_a, bits_b = (numpy.array([build.bits_per_key for build in side]) for side in (a, b))
    mean_a, mean_b = float(bits_a.mean()), float(bits_b.mean())
    finding = Finding(a=mean_a, b=mean_b)
    if mean_a == 0:
        finding.reason = "A has no bits"
        return finding
    finding.ratio = mean_b / mean_a
    least = 1 + limits.bits
    constant = numpy.ptp(bits_a) == 0 and numpy.ptp(bits_b) == 0
    if constant or {build.seed for build in a} == {build.seed for build in b}:
        # Nothing is left to chance: the same seeds, or sizes that no seed moves.
        finding.low = finding.high = finding.ratio
        finding.p_worse = 0.0 if finding.ratio > least else 1.0
        finding.p_better = 0.0 if finding.ratio < 1 / least else 1.0
        return finding
    if min(len(a), len(b)) < 2:
        finding.reason = "sizes differ between seeds, and a side has one build"
        return finding
    var_a, var_b = bits_a.var(ddof=1) / len(a), bits_b.var(ddof=1) / len(b)
    df = (var_a + var_b)**2 / (var_a**2 / (len(a) - 1) + var_b**2 / (len(b) - 1))  # Welch 1947
    half = stats.t.ppf((1 + CONFIDENCE) / 2, df) * math.sqrt(var_a + var_b) / mean_a
    finding.low, finding.high = finding.ratio - half, finding.ratio + half

    def score(limit):
        return (mean_b - limit * mean_a) / math.sqrt(var_b + limit**2 * var_a)

    finding.p_worse = float(stats.t.sf(score(least), df))
    finding.p_better = float(stats.t.cdf(score(1 / least), df))
    return finding


# --- Verdicts ---

def decide(findings, limits):
    """Gives the verdicts of one comparison. `findings`: (quantity, Finding), quantity being "ns",
    "fpr" or "bits_per_key"."""
    tested = [(quantity, finding) for quantity, finding in findings if finding.p_worse is not None]
    worse = holm([finding.p_worse for _, finding in tested])
    better = holm([finding.p_better for _, finding in tested])
    least_of = {"ns": limits.ns, "fpr": limits.fpr, "bits_per_key": limits.bits}
    for (quantity, finding), p_worse, p_better in zip(tested, worse, better):
        finding.p_adjusted = float(min(p_worse, p_better))
        if quantity == "ns":
            finding.finds = math.expm1(math.log1p(limits.ns) + finding.error * (
                stats.t.isf(limits.alpha / len(tested), finding.df)
                # Missed by any reference it is missed.
                + stats.t.ppf(1 - (1 - FOUND_CHANCE) / finding.references, finding.df)))
        least = least_of[quantity]
        if p_worse <= limits.alpha:
            finding.verdict = WORSE
        elif p_better <= limits.alpha:
            finding.verdict = BETTER
        elif finding.high <= 1 + least:
            finding.verdict = SAME
        elif finding.low > 1 + least:
            finding.reason = (f"worse by itself, but not beyond what chance does among "
                              f"{len(tested)} tests")
        elif finding.reason is None:
            finding.reason = f"its interval reaches beyond {1 + least:.4g}"
        if finding.verdict != UNDECIDED:
            finding.reason = None
    return len(tested)
