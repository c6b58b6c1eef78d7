import pathlib
import subprocess
import sys

import matplotlib
import pytest

from plots import build_vs_keys, pictures, selection, style, testing

_ROOT = pathlib.Path(__file__).resolve().parent.parent


def test_known_filters_differ_in_colour_and_in_marker():
    looks = style.filter_looks(testing.FILTERS)
    assert len({look.colour for look in looks.values()}) == len(testing.FILTERS)
    assert len({look.marker for look in looks.values()}) == len(testing.FILTERS)


def test_the_pool_repeats_no_colour_and_no_marker():
    known = [style._KNOWN[name] for name in testing.FILTERS]
    colours = [colour.lower() for colour, _ in [*known, *style._POOL]]
    markers = [marker for _, marker in [*known, *style._POOL]]
    assert len(set(colours)) == len(colours) and len(set(markers)) == len(markers)


def test_a_new_filter_gets_a_look_of_its_own_that_depends_on_its_name_alone():
    alone = style.filter_looks(["sorted_fingerprints"])["sorted_fingerprints"]
    among = style.filter_looks([*testing.FILTERS, "sorted_fingerprints"])
    assert among["sorted_fingerprints"] == alone
    assert len({look.colour for look in among.values()}) == len(among)
    assert style.filter_looks(testing.FILTERS) == {
        name: look for name, look in among.items() if name in testing.FILTERS}


def test_looks_are_the_same_in_another_process():
    """str hashes are salted per process, so a look must not come from hash()."""
    program = ("from plots import style\n"
               "print([style.filter_looks([n])[n].colour for n in ('xor', 'vqf', 'prefix')])")
    outputs = {subprocess.run([sys.executable, "-c", program], cwd=_ROOT, check=True, text=True,
                              capture_output=True, env={"PYTHONHASHSEED": seed}).stdout
               for seed in ("1", "2")}
    assert len(outputs) == 1


def test_many_new_filters_all_differ():
    names = [f"filter_{i}" for i in range(40)]
    looks = style.filter_looks([*names, *testing.FILTERS])
    assert len({look[:2] for look in looks.values()}) == 45
    twelve = style.filter_looks([*names[:12], *testing.FILTERS])
    assert len({look.colour for look in twelve.values()}) == 17


def test_variants_share_colour_and_marker_and_differ_in_line_and_fill(full_run):
    looks = style.series_looks(full_run.points)
    plain, enhanced = looks["km_bloom", "probing=plain"], looks["km_bloom", "probing=enhanced"]
    assert plain[:2] == enhanced[:2]
    assert plain.linestyle != enhanced.linestyle and plain.fill != enhanced.fill


def _luminance(colour):
    """Relative luminance (WCAG 2.1)."""
    channels = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
                for c in matplotlib.colors.to_rgb(colour)]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), channels))


def _contrast(a, b):
    light, dark = sorted((_luminance(a), _luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _colours_of_filters():
    return {name: colour for name, (colour, _) in style._KNOWN.items()} | {
        f"pool {place}": colour for place, (colour, _) in enumerate(style._POOL)}


def test_every_colour_stands_out_from_white_paper():
    for name, colour in _colours_of_filters().items():
        assert _contrast(colour, "#ffffff") > 1.5, name


def test_every_colour_stands_out_from_a_dark_page():
    page = style.make_page("dark")
    for name, colour in (_colours_of_filters() | {"touch_lines": page.floor}).items():
        assert _contrast(colour, page.background) >= 2.5, name
    with style.on(page):
        assert style.filter_looks(["touch_lines"])["touch_lines"].colour == page.floor


@pytest.mark.parametrize("theme", style.THEMES)
def test_text_and_marks_stand_out_on_every_page(theme):
    page = style.make_page(theme)
    assert _contrast(page.ink, page.background) >= 7
    assert _contrast(page.grey, page.background) >= 4.5
    assert 1.05 <= _contrast(page.grid, page.background) < _contrast(page.light_grey,
                                                                    page.background)


def test_known_filters_differ_in_grey_or_in_marker():
    levels = [(pictures.grey(colour), marker) for colour, marker in [
        *(style._KNOWN[name] for name in testing.FILTERS), *style._POOL]]
    for i, (a, marker_a) in enumerate(levels):
        for b, marker_b in levels[:i]:
            assert abs(a - b) > 0.25 or marker_a != marker_b
    assert max(levels)[0] - min(levels)[0] > 0.3


def test_filters_of_the_catalogue_look_the_same_in_every_run_and_all_differ_without_colour():
    names = [*style._KNOWN, *style._ROSTER]
    together = style.filter_looks([*names, "a_plug_in"])
    assert all(style.filter_looks([name])[name] == together[name] for name in names)
    shapes = [together[name][1:] for name in names if name not in testing.BASELINES]
    assert len(set(shapes[:5 + 24])) == 5 + 24  # fills come back with the third use of the pool
    assert len({together[name] for name in names}) == len(names)


def test_series_that_only_colour_tells_apart_are_found():
    figure, ((axes,),) = style.new_figure(3)
    for name, colour, marker in (("a", "#0072B2", "o"), ("b", "#D55E00", "o"),
                                 ("c", "#0072B2", "s"), ("d", "#ffffff", "o")):
        axes.plot([1, 2], [1, 2], color=colour, marker=marker, gid=f"measured:{name}")
    assert pictures.alike_in_grey(figure) == [("measured:a", "measured:b")]


@pytest.mark.parametrize("spoil,says", [
    (lambda figure: figure.text(0.9, 0.5, "a text that leaves the page " * 3), "leaves the page"),
    (lambda figure: figure.text(0.3, 0.5, "a text upon the panel"), "overlaps 'a text upon"),
    (lambda figure: figure.axes[0].xaxis.set_major_locator(style.ticker.FixedLocator(
        [1e6, 1.1e6, 1.2e6])), "touches"),
    (lambda figure: figure.axes[0].set_position([0.5, 0.5, 0.01, 0.01]), "small")])
def test_faults_of_a_picture_are_found(full_run, spoil, says):
    figure = build_vs_keys.draw(full_run)
    assert pictures.faults(figure) == []
    spoil(figure)
    assert any(says in fault for fault in pictures.faults(figure))


def test_a_page_holds_inside_its_block_only():
    before = style.page()
    with style.on(style.make_page("paper", "text")) as page:
        assert style.page() is page and matplotlib.rcParams["font.family"] == ["serif"]
        with style.on(style.make_page("dark")):
            assert style.page().theme == "dark"
        assert style.page() is page
    assert style.page() is before and matplotlib.rcParams["font.family"] == ["sans-serif"]
    with pytest.raises(ZeroDivisionError):
        with style.on(style.make_page("dark")):
            raise ZeroDivisionError
    assert style.page() is before


def test_columns_stack_on_a_narrow_page_and_keep_their_places_in_the_array():
    for sharex, neighbours in ((False, [(0, 0), (0, 1), (1, 0), (1, 1)]),
                               ("col", [(0, 0), (1, 0), (0, 1), (1, 1)])):
        with style.on(style.make_page("paper", "column")):
            figure, panels = style.new_figure(4, rows=2, columns=2, sharex=sharex, sharey="row",
                                              gridspec_kw={"height_ratios": [3, 1]})
        assert panels.shape == (2, 2) and figure.placed.shape == (4, 1)
        assert [panels[place] for place in neighbours] == list(figure.placed.flat)
        assert panels[0, 0].get_shared_y_axes().joined(panels[0, 0], panels[0, 1])
        assert not panels[0, 0].get_shared_y_axes().joined(panels[0, 0], panels[1, 0])
        ratios = panels[0, 0].get_subplotspec().get_gridspec().get_height_ratios()
        assert ratios == [3 if row == 0 else 1 for row, _ in neighbours]


@pytest.mark.parametrize("page,outer", [(("screen", None), "left"), (("paper", "column"), "all")])
def test_a_label_of_a_shared_axis_is_set_once_and_stands_at_the_outer_panels(full_run, page, outer):
    with style.on(style.make_page(*page)):
        figure, panels = style.new_figure(4, columns=2, sharex=True, sharey=True)
        panels[0, 0].set_ylabel("time")
        panels[0, 1].set_xlabel("keys")
        style.finish(figure, full_run, "Title", "conditions", "Reading.", [])
    assert [axes.get_ylabel() for axes in panels.flat] == (
        ["time", ""] if outer == "left" else ["time", "time"])
    assert [axes.get_xlabel() for axes in panels.flat] == (
        ["keys", "keys"] if outer == "left" else ["", "keys"])


def test_printable_keeps_two_names_two_names():
    assert style.printable("\u8fc7\u6ee4") == "U+8FC7U+6EE4"
    assert style.printable("a$b$") == r"a\$b\$"
    assert style.printable("f\u00fcnf \u03b1") == "f\u00fcnf \u03b1"
    assert "\n" not in style.printable("a\nb")
    assert len(style.printable("x" * 100, 44)) == 44


def test_counts_are_exact_and_short():
    assert [style.count(n) for n in (7, 1000, 30_000, 123_456, 10 ** 8)] == [
        "7", "10\u00b3", "3\u00d710\u2074", "123456", "10\u2078"]
    assert style.bytes_label(32 << 10) == "32 KiB" and style.bytes_label(48) == "48 B"


def test_a_log_axis_has_labels_even_if_all_values_are_alike():
    _, ((axes,),) = style.new_figure(3)
    style.log_axis(axes.yaxis, [2.3, 2.31])
    low, high = axes.get_ylim()
    assert low < 2.3 and high > 2.31
    assert len([t for t in axes.get_yticks() if low <= t <= high]) >= 2


def test_long_intervals_do_not_press_the_values_into_a_corner():
    _, ((axes,),) = style.new_figure(3)
    style.log_axis(axes.yaxis, [2.0, 8.0], ends=[1.9, 9000.0, float("nan")])
    low, high = axes.get_ylim()
    assert 1 <= low < 1.9 and 16 <= high <= 20


def test_the_users_matplotlibrc_does_not_count(tmp_path):
    (tmp_path / "matplotlibrc").write_text("font.size: 30\nbackend: TkAgg\naxes.facecolor: red\n")
    program = ("from plots import style\nimport matplotlib as m\n"
               "print(m.rcParams['font.size'], m.rcParams['axes.facecolor'], m.get_backend())")
    result = subprocess.run([sys.executable, "-c", program], cwd=_ROOT, text=True, check=True,
                            capture_output=True, env={"MPLCONFIGDIR": str(tmp_path)})
    assert result.stdout.lower().split() == ["8.0", "#ffffff", "agg"]


def test_the_order_of_legends_puts_the_floor_last():
    handles = {("touch_lines", "lines=1"): "floor", ("ribbon", "w=128"): "r128",
               ("ribbon", "w=64"): "r64", ("xor", ""): "xor"}
    assert style.in_legend_order(handles) == ["r64", "r128", "xor", "floor"]
    # No filter is one of applications alone.
    assert set(selection.BASELINES) == {*testing.BASELINES, selection.ALWAYS_MAYBE}
