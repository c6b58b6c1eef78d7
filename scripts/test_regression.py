"""The statistics of `compare`, on simulated runs of which the truth is known. Fixed seeds."""

import math
import os
import warnings

import numpy
import pytest
from scipy import stats

from scripts import regression
from scripts.regression import BETTER, SAME, UNDECIDED, WORSE, Build, Limits

FILTERS = tuple(f"filter_{i}" for i in range(6))
LEVELS = 2


def make_rows():
    rows = []
    for level in range(LEVELS):
        for mode in ("lookup_batched", "latency"):
            for name in FILTERS:
                rows += [regression.Row(name, mode, level, False, False)] * 3
            for name in ("touch_lines", "hash_only"):
                rows += [regression.Row(name, mode, level, True, False)] * 2
        rows += [regression.Row(name, "build", level, False, True) for name in FILTERS]
    return rows


ROWS = make_rows()


def simulate(random, processes, *, drift=0.05, between=0.02, places=0.01, noise=0.006, tails=None,
             baselines_apart=0.0, slower=None, runs=1):
    """(y, is_b): two sides whose truth is the same but for `slower`, {filter: factor}.

    drift: a whole run's speed; between: a process's; places: a run's in one cache level;
    noise: a row's in one process, of Student's law with `tails` degrees of freedom;
    baselines_apart: what a run's filters of one level have and its baselines have not.
    """
    levels = numpy.array([row.cache_level for row in ROWS])
    is_baseline = numpy.array([row.is_baseline for row in ROWS])
    columns, is_b = [], []
    for side in (False, True):
        for _ in range(runs):
            run = (random.normal(0, drift) + random.normal(0, places, LEVELS)[levels]
                   + random.normal(0, baselines_apart, LEVELS)[levels] * ~is_baseline)
            for _ in range(processes):
                own = (random.normal(0, 1, len(ROWS)) if tails is None
                       else random.standard_t(tails, len(ROWS)))
                column = run + random.normal(0, between) + noise * own
                for name, factor in (slower or {}).items() if side else ():
                    column = column + math.log(factor) * numpy.array(
                        [row.filter == name for row in ROWS])
                columns.append(column)
                is_b.append(side)
    y = numpy.array(columns).T
    if runs > 1:  # one value a run
        y = y.reshape(len(ROWS), 2 * runs, processes).mean(axis=2)
        is_b = is_b[::processes]
    return y, numpy.array(is_b)


def judge(y, is_b, unit="process", limits=Limits()):
    times = regression.compare_times(y, is_b, ROWS, limits, unit)
    regression.decide([("ns", finding) for finding in (*times.findings, *times.filters.values())],
                      limits)
    return times


def worse_filters(times):
    return ({row.filter for row, finding in zip(ROWS, times.findings) if finding.verdict == WORSE}
            | {name for name, finding in times.filters.items() if finding.verdict == WORSE})


@pytest.mark.parametrize("circumstances", [
    {"processes": 2}, {"processes": 3}, {"processes": 6},
    {"processes": 2, "tails": 2.5}, {"processes": 6, "tails": 2.5},
    {"processes": 2, "noise": 0.001, "places": 0.03},
    {"processes": 4, "noise": 0.002, "baselines_apart": 0.05},
    {"processes": 4, "drift": 0.3, "between": 0.1},
    {"processes": 2, "runs": 3}, {"processes": 2, "runs": 2, "baselines_apart": 0.02},
], ids=str)
def test_the_same_program_twice_raises_no_alarm(circumstances):
    """The rate is held below 5 %, and what is tested beyond it (a minimum effect, the scatter between
    runs) leaves none in 60 comparisons, whose seed is fixed."""
    comparisons = 60
    random = numpy.random.default_rng(1)
    alarms = 0
    for _ in range(comparisons):
        y, is_b = simulate(random, **circumstances)
        unit = "run" if "runs" in circumstances else "process"
        alarms += bool(worse_filters(judge(y, is_b, unit)))
    assert alarms == 0


@pytest.mark.parametrize("processes, least_found", [(6, 0.95), (12, 0.95)])
def test_a_slow_down_of_five_percent_is_found_with_enough_processes(processes, least_found):
    random = numpy.random.default_rng(2)
    found = 0
    for _ in range(20):
        times = judge(*simulate(random, processes, slower={"filter_3": 1.05}))
        assert worse_filters(times) <= {"filter_3"}
        found += worse_filters(times) == {"filter_3"}
    assert found >= least_found * 20


def test_what_no_point_shows_the_middle_of_all_points_of_a_filter_does():
    random = numpy.random.default_rng(15)
    found_by_rows = found_by_filters = 0
    for _ in range(10):
        times = judge(*simulate(random, 6, noise=0.012, tails=2.5, slower={"filter_3": 1.05}))
        assert worse_filters(times) <= {"filter_3"}
        found_by_rows += any(finding.verdict == WORSE for finding in times.findings)
        found_by_filters += times.filters["filter_3"].verdict == WORSE
    assert found_by_filters >= 6 > 2 * found_by_rows


def test_it_is_found_behind_a_drift_in_the_other_direction():
    random = numpy.random.default_rng(3)
    y, is_b = simulate(random, 8, slower={"filter_3": 1.08}, drift=0)
    y[:, is_b] -= 0.2  # the machine was a fifth faster
    times = judge(y, is_b)
    assert worse_filters(times) == {"filter_3"}
    for row, finding in zip(ROWS, times.findings):
        assert finding.raw_ratio < 1
        if row.filter == "filter_3":
            assert finding.ratio == pytest.approx(1.08, abs=0.02)


def test_a_change_of_the_baselines_is_no_change_of_the_filters():
    random = numpy.random.default_rng(4)
    y, is_b = simulate(random, 6, slower={"touch_lines": 0.9, "hash_only": 0.9})
    times = judge(y, is_b)
    assert not worse_filters(times)
    # What it looks like is told.
    assert any(ratio > 1.05 for *_, ratio, _, _ in times.groups)


def test_a_change_of_all_filters_is_told_and_several_runs_find_it():
    random = numpy.random.default_rng(5)
    slower = dict.fromkeys(FILTERS, 1.08)
    times = judge(*simulate(random, 6, slower=slower))
    assert not worse_filters(times)
    lookups = [group for group in times.groups if not group[0].startswith("build")]
    assert lookups and all(ratio == pytest.approx(1.08, abs=0.03) and low > 1
                           for *_, ratio, low, _ in lookups)
    several = judge(*simulate(random, 3, slower=slower, runs=8, noise=0.003), unit="run")
    assert worse_filters(several) == set(FILTERS)


def test_several_runs_tell_a_change_of_everything_from_the_machine():
    random = numpy.random.default_rng(6)
    everything = dict.fromkeys((*FILTERS, "touch_lines", "hash_only"), 1.1)
    calm = {"drift": 0.003, "between": 0.003, "places": 0.002}
    y, is_b = simulate(random, 2, slower=everything, runs=5, **calm)
    finding = regression.whole_shift(y, is_b, ROWS, Limits())
    assert finding.p_worse < 0.001 and finding.ratio == pytest.approx(1.1, abs=0.01)
    y, is_b = simulate(random, 2, slower=everything, runs=5, drift=0.1)
    assert regression.whole_shift(y, is_b, ROWS, Limits()).p_worse > 0.001
    assert regression.whole_shift(*simulate(random, 2, runs=2), ROWS, Limits()) is None


def test_one_process_decides_nothing_and_says_so():
    times = judge(*simulate(numpy.random.default_rng(7), 1, slower={"filter_0": 2.0}))
    assert {finding.verdict for finding in times.findings} == {UNDECIDED}
    assert all("at least 2" in finding.reason for finding in times.findings)


def test_how_many_processes_would_do_is_right():
    """With as many as it says most intervals are within the minimum effect, and with half they are
    not."""
    random = numpy.random.default_rng(8)
    times = judge(*simulate(random, 3, noise=0.02, places=0, between=0))
    needed = int(numpy.median([finding.needed for finding in times.findings if finding.needed]))
    assert 4 <= needed <= 40

    def decided(processes):
        times = judge(*simulate(random, processes, noise=0.02, places=0, between=0))
        return numpy.mean([finding.high / finding.ratio <= 1 + Limits().ns
                           for finding in times.findings])

    assert decided(2 * needed) > 0.8 and decided(max(2, needed // 3)) < 0.2


def test_scatter_between_runs_that_no_process_shows_is_seen():
    random = numpy.random.default_rng(9)
    y, is_b = simulate(random, 4, noise=0.001)
    y[:, is_b] += random.normal(0, 0.03, (len(ROWS), 1))
    times = judge(y, is_b)
    assert times.scatter == pytest.approx(0.03, rel=0.5)
    assert not worse_filters(times)
    # What is not there is not seen: neither is a row's own spread taken for it.
    assert numpy.mean([judge(*simulate(random, 6)).scatter for _ in range(5)]) < 0.0015


def test_a_change_of_the_minimum_effect_is_none_and_a_little_more_is():
    random = numpy.random.default_rng(14)
    for factor, expected in ((1.018, set()), (1.03, {"filter_3"})):
        times = judge(*simulate(random, 20, noise=0.002, slower={"filter_3": factor}))
        assert worse_filters(times) == expected


def test_an_interval_covers_the_truth():
    """The 95 % intervals of rows, over 30 comparisons with nothing else between the runs."""
    random = numpy.random.default_rng(10)
    covered = []
    for _ in range(30):
        times = judge(*simulate(random, 4, slower={"filter_1": 1.03}))
        covered += [finding.low <= 1.03 <= finding.high
                    for row, finding in zip(ROWS, times.findings) if row.filter == "filter_1"]
    assert numpy.mean(covered) > 0.9


def test_missing_units_are_left_out():
    y, is_b = simulate(numpy.random.default_rng(11), 4)
    y[0, 1] = math.nan
    y[1, ~is_b] = math.nan
    y[1, 0] = 0.0
    findings = judge(y, is_b).findings
    assert findings[0].p_worse is not None and findings[1].p_worse is None


def test_few_rows_without_a_reference_are_undecided():
    rows = [regression.Row("a", "lookup_batched", 0, False, False)]
    y = numpy.array([[0.0, 0.001, 0.3, 0.301]])
    is_b = [False, False, True, True]
    times = regression.compare_times(y, is_b, rows, Limits())
    assert times.findings[0].p_worse is None and "touch_lines" in times.findings[0].reason


def test_holm_is_the_step_down_procedure():
    assert regression.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert list(regression.holm([])) == []
    assert list(regression.holm([0.9, 0.8])) == [1, 1]


def test_the_prior_of_variances_is_recovered():
    random = numpy.random.default_rng(12)
    dfs = numpy.full(4000, 4.0)
    variances = 2e-4 * stats.f.rvs(4, 6, size=4000, random_state=random)
    prior_df, variance = regression.prior_of_variances(variances, dfs)
    assert prior_df == pytest.approx(6, rel=0.25) and variance == pytest.approx(2e-4, rel=0.1)


# --- Rates ---

def builds(counts, queries=1_000_000, seed=0, sd=0.0, bits=10.0):
    return [Build(seed=seed + i, digest=f"{seed + i}", bits_per_key=bits, false_positives=count,
                  queries=queries, instance_sd=sd) for i, count in enumerate(counts)]


def verdict(finding, quantity="fpr"):
    regression.decide([(quantity, finding)], Limits())
    return finding.verdict


def test_rates_of_equal_filters_raise_no_alarm():
    random = numpy.random.default_rng(13)
    worse = {0.0: 0, 3e-4: 0}
    for sd in worse:
        for _ in range(300):
            rates = random.normal(0.01, sd, 4)
            counts = random.binomial(1_000_000, rates)
            worse[sd] += verdict(regression.compare_rates(
                builds(counts[:2], sd=sd), builds(counts[2:], seed=9, sd=sd), Limits())) == WORSE
    assert max(worse.values()) <= stats.binom.isf(1e-6, 300, 0.05)


def test_a_worse_rate_is_found_and_a_better_one_is_no_regression():
    a = builds([10_000, 10_100])
    assert verdict(regression.compare_rates(a, builds([11_000, 11_100], seed=9), Limits())) == WORSE
    assert verdict(regression.compare_rates(a, builds([9_000, 9_100], seed=9), Limits())) == BETTER
    # Filters whose rate depends on the seed by as much as that say nothing.
    apart = regression.compare_rates(builds([10_000, 10_100], sd=0.001),
                                     builds([11_000, 11_100], seed=9, sd=0.001), Limits())
    assert verdict(apart) == UNDECIDED


def test_rare_false_positives_are_counted_exactly():
    finding = regression.compare_rates(builds([0]), builds([3], seed=9), Limits())
    assert finding.p_worse == pytest.approx(stats.binom.sf(2, 3, 1.02 / 2.02))
    assert finding.ratio == math.inf and finding.low > 0 and verdict(finding) == UNDECIDED
    assert verdict(regression.compare_rates(builds([0]), builds([40], seed=9), Limits())) == WORSE
    assert verdict(regression.compare_rates(builds([0]), builds([0], seed=9), Limits())) != WORSE


def test_unequal_numbers_of_queries_are_no_difference():
    finding = regression.compare_rates(builds([10_000]), builds([100_000], 10_000_000, seed=9),
                                       Limits())
    assert finding.ratio == 1 and finding.low < 1 < finding.high and verdict(finding) != WORSE


def test_the_same_filters_have_the_same_rate():
    assert verdict(regression.compare_rates(builds([5, 7]), builds([5, 7]), Limits())) == SAME
    assert regression.compare_rates([], builds([5]), Limits()) is None


# --- Sizes ---

def sized(bits, seed=0):
    return [Build(seed=seed + i, digest=None, bits_per_key=b) for i, b in enumerate(bits)]


@pytest.mark.parametrize("a, b, seed, expected", [
    ([10, 10], [10, 10], 0, SAME), ([10, 10], [10.005, 10.005], 0, SAME),
    ([10, 10], [10.02, 10.02], 0, WORSE), ([10], [10.02], 9, WORSE), ([10], [9.9], 0, BETTER),
    # Sizes that depend on the seed: seed by seed, or not at all from two of each.
    ([10, 10.4], [10, 10.5], 0, WORSE), ([10, 10.4], [10, 10.5], 9, UNDECIDED),
])
def test_sizes(a, b, seed, expected):
    finding = regression.compare_sizes(sized(a), sized(b, seed), Limits())
    assert verdict(finding, "bits_per_key") == expected


# --- Coverage over many draws ---

DRAWS = 10_000  # a share of 0.95 deviates by 0.0022: outside of 0.94..0.96 by chance 1 in 1e5


def test_the_intervals_of_rows_cover_95_percent():
    """Of 10,000 rows of one filter each, alike but for chance; spreads are drawn to their common
    law, so that the intervals of few processes are neither too wide nor too narrow."""
    random = numpy.random.default_rng(21)
    for processes in (2, 3, 6):
        rows = [regression.Row("a", "lookup_batched", 0, False, False)] * DRAWS
        rows += [regression.Row("touch_lines", "lookup_batched", 0, True, False)] * 99
        y = 0.006 * random.normal(0, 1, (len(rows), 2 * processes))
        is_b = numpy.arange(2 * processes) >= processes
        findings = regression.compare_times(y, is_b, rows, Limits()).findings[:DRAWS]
        covered = numpy.mean([finding.low <= 1 <= finding.high for finding in findings])
        assert 0.94 <= covered <= 0.96, processes


def test_the_interval_of_two_counts_covers_at_least_95_percent():
    """Clopper and Pearson's is conservative, the more so the fewer counts there are."""
    random = numpy.random.default_rng(22)
    for mean in (3, 30, 1000):
        counts = random.poisson(mean, (DRAWS, 2))
        covered = 0
        for k_a, k_b in counts:
            low, high = regression._ratio_of_counts(int(k_a), 1e6, int(k_b), 1e6)
            covered += low <= 1 <= high
        assert covered / DRAWS >= 0.945, mean
        assert covered / DRAWS <= {3: 1, 30: 0.98, 1000: 0.96}[mean], mean


def test_the_interval_of_sizes_covers_95_percent():
    """Welch's, of two laws of different widths."""
    random = numpy.random.default_rng(23)
    covered = 0
    for a, b in zip(random.normal(10, 0.1, (DRAWS, 8)), random.normal(10, 0.03, (DRAWS, 8))):
        finding = regression.compare_sizes(sized(a), sized(b, 100), Limits())
        covered += finding.low <= 1 <= finding.high
    assert 0.94 <= covered / DRAWS <= 0.96


# --- What is no usual sample ---

def _all_numbers(finding):
    return [getattr(finding, name) for name in ("ratio", "low", "high", "p_worse", "p_better",
                                                "p_adjusted") if getattr(finding, name) is not None]


@pytest.mark.parametrize("make", [
    lambda random, shape: numpy.zeros(shape),                                  # constant
    lambda random, shape: numpy.round(random.normal(0, 0.01, shape), 2),       # ties
    lambda random, shape: random.choice([0.0, 0.47], shape),                   # two clusters
    lambda random, shape: random.standard_cauchy(shape) * 0.01,                # no mean
    lambda random, shape: random.normal(0, 0.01, shape) + 690,                 # near the largest
    lambda random, shape: random.normal(0, 0.01, shape) - 690,                 # near the least
], ids=["constant", "ties", "two_clusters", "cauchy", "huge", "tiny"])
@pytest.mark.parametrize("processes", [1, 2, 5])
def test_strange_samples_that_are_alike_raise_no_alarm(make, processes):
    random = numpy.random.default_rng(24)
    alarms = 0
    for _ in range(10):
        y = make(random, (len(ROWS), 2 * processes))
        times = judge(y, numpy.arange(2 * processes) >= processes)
        for finding in (*times.findings, *times.filters.values()):
            known = _all_numbers(finding)
            tested = finding.p_worse is not None
            assert not any(math.isnan(value) for value in known) or not tested
            assert processes > 1 or not tested
        alarms += bool(worse_filters(times))
    # Each comparison alarms by chance in 1 of 20 at most: 4 of 10 do 1 time in 1000.
    assert alarms <= 3


def test_one_sample_and_none_of_a_rate():
    assert regression.compare_rates([], [], Limits()) is None
    finding = regression.compare_rates(builds([0], queries=1), builds([1], queries=1, seed=9),
                                       Limits())
    assert verdict(finding) == UNDECIDED and not math.isnan(finding.p_worse)
    everything = regression.compare_rates(builds([1000], 1000), builds([1000], 1000, seed=9),
                                          Limits())
    assert verdict(everything) != WORSE and not math.isnan(everything.p_worse)


# --- Chances of alarms, and power ---

# Many draws take minutes: FILTERBENCH_SIMULATIONS=10000 makes as many of each.
MANY = int(os.environ.get("FILTERBENCH_SIMULATIONS", "300"))


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("deviation", [0.0, 3e-4, 1e-3])
def test_rates_of_seeds_that_differ_by_nobody_knows_what_raise_no_alarm(count, deviation):
    """Deviations between seeds of 0, 3 and 10 % of the rate. Alarms and misses are at most
    Binomial(MANY, 0.05): more than the bound by chance 1 in 1e6."""
    random = numpy.random.default_rng(25)
    alarms = missed = 0
    for _ in range(MANY):
        counts = random.binomial(1_000_000, numpy.abs(random.normal(0.01, deviation, 2 * count)))
        finding = regression.compare_rates(
            builds(counts[:count], sd=math.nan), builds(counts[count:], seed=9, sd=math.nan),
            Limits(fpr=0.0))
        alarms += finding.p_worse <= 0.05
        missed += not finding.low <= 1 <= finding.high
    assert max(alarms, missed) <= stats.binom.isf(1e-6, MANY, 0.05)


def test_one_build_a_side_of_which_theory_says_nothing_is_undecided():
    """By counts alone, seeds that differ by 10 % would give an alarm in two of five comparisons."""
    finding = regression.compare_rates(builds([10_000], sd=math.nan),
                                       builds([12_000], seed=9, sd=math.nan), Limits())
    assert finding.p_worse is None and verdict(finding) == UNDECIDED
    assert "each side has one build" in finding.reason
    # Without chance between them they are compared all the same.
    assert verdict(regression.compare_rates(builds([7], sd=math.nan), builds([7], sd=math.nan),
                                            Limits())) == SAME


def test_a_slow_down_that_should_be_found_is_found():
    """What `finds` says is found with a chance of 0.8: rows that are slower by that, a ninth of
    all. Below 0.66 of 200 by chance 1 in 1e6. By the error of one reference alone it was 0.58."""
    random = numpy.random.default_rng(26)
    calm = {"drift": 0.0, "between": 0.0, "places": 0.0, "noise": 0.01}
    own = [i for i, row in enumerate(ROWS) if not row.is_baseline and not row.builds]
    moved = own[::9]
    found = []
    for _ in range(25):
        # Told by one pair of runs, tried on another.
        findings = judge(*simulate(random, 6, **calm)).findings
        finds = [findings[i].finds for i in moved]
        y, is_b = simulate(random, 6, **calm)
        y[numpy.ix_(moved, is_b)] += numpy.log1p(finds)[:, None]
        findings = judge(y, is_b).findings
        found += [findings[i].verdict == WORSE for i in moved]
    assert len(found) == 200 and 0.66 <= numpy.mean(found)


@pytest.mark.parametrize("shape", [(1, 1), (4, 1), (4, 3), (5, 6), (7, 2)])
def test_the_median_without_what_is_missing_is_that_of_what_is_there(shape):
    random = numpy.random.default_rng(27)
    for _ in range(20):
        values = random.normal(0, 1, shape)
        values[random.random(shape) < 0.4] = math.nan
        for axis in (0, 1):
            expected = [numpy.median(line[~numpy.isnan(line)]) if (~numpy.isnan(line)).any()
                        else math.nan for line in numpy.moveaxis(values, axis, 1)]
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = regression._nan_median(values, axis)
            numpy.testing.assert_array_equal(found, expected)
