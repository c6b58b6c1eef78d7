"""The page in a browser, opened from the disk, as a reader meets it."""

import copy
import csv
import io
import json
import re

import pytest

from plots import headline, load, testing
from plots.report import looks, page

LOOKUPS = '[data-figure="lookup_vs_size"]'


def entries(run_path):
    return {entry["point_id"]: entry
            for entry in json.loads((run_path / "summary.json").read_text())["points"]
            if entry["point"]["mode"] != "workload"}  # the page is about filters


def write_page(tmp_path, made, *paths):
    file = tmp_path / "page.html"
    page.write(file, page.render(load.load_runs(paths), made))
    return file


def rows(browser):
    """The point ids of the rows that are seen."""
    return browser.run("return [...document.querySelectorAll('#points-body tbody tr')].map("
                       "(e) => e.dataset.point)")


def count(browser):
    return int(browser.texts("#points-body .count")[0].split()[0])


def focus(browser, selector):
    browser.run("const e = document.querySelector(arguments[0]);"
                "e.scrollIntoView({block: 'center'}); e.focus()", selector)


def tip(browser, figure=LOOKUPS):
    """{name: value} of the tip that is seen, or None."""
    return browser.run("""
        const tip = document.querySelector(arguments[0] + ' .tip');
        if (tip.hidden) return null;
        const texts = (tag) => [...tip.querySelectorAll(tag)].map((e) => e.textContent);
        const values = texts('dd');
        return Object.fromEntries(texts('dt').map((name, i) => [name, values[i]]));""", figure)


def ring(browser, figure=LOOKUPS):
    """Where in the window the point lies that is pointed at."""
    return browser.run("""
        const box = document.querySelector(arguments[0] + ' .ring').getBoundingClientRect();
        return [box.x + box.width / 2, box.y + box.height / 2];""", figure)


def test_the_page_loads_from_the_disk_without_errors_or_network(browser, full_page):
    browser.open(full_page)
    assert browser.errors() == []
    urls = [url for url in browser.requests() if not url.startswith("data:")]
    assert urls == [full_page.resolve().as_uri()]
    drawn = browser.run("""
        return [...document.querySelectorAll('figure')].map((figure) => {
          figure.querySelector('.chart').focus();
          return [figure.dataset.figure, figure.querySelectorAll('.canvas svg path').length];
        });""")
    assert browser.errors() == []
    assert [name for name, _ in drawn] == ["fpr_vs_bits", "lookup_vs_size", "space_vs_speed",
                                           "build_vs_keys", "lookup_vs_negatives", "overfill"]
    assert all(paths > 20 for _, paths in drawn)


def test_nothing_from_elsewhere_could_be_loaded(browser, full_page):
    browser.open(full_page)
    assert browser.run("""
        const done = arguments[arguments.length - 1];
        return fetch('https://example.invalid/').then(() => 'loaded', (e) => String(e));
        """).startswith("TypeError")
    assert any("Content Security Policy" in message for message in browser.errors())


def test_the_table_filters_by_text_and_by_columns(browser, full_page, full_run_path):
    browser.open(full_page)
    known = entries(full_run_path)
    assert count(browser) == len(known)
    browser.type("#points-body input[type=search]", "CUCKOO no_such_mode")
    assert count(browser) == 0
    browser.type("#points-body input[type=search]", "cuckoo avx2")
    expected = [e for e in known.values()
                if e["point"]["filter"] == "cuckoo" and e["point"]["target"] == "avx2"]
    assert count(browser) == len(expected)
    browser.choose("[name=only-mode]", "lookup_single")
    browser.choose("[name=only-keys]", "100000")
    browser.choose("[name=only-negative_share]", "0.5")
    expected = {e["point_id"] for e in expected
                if (e["point"]["mode"], e["point"]["keys"], e["point"]["negative_share"])
                == ("lookup_single", 100_000, 0.5)}
    assert expected and set(rows(browser)) == expected
    browser.choose("[name=only-status]", "out_of_memory")
    assert count(browser) == 0
    browser.click("#points-body .toolbar button")
    assert count(browser) == len(known)


def test_failed_points_say_why_and_unknown_values_too(browser, full_page):
    browser.open(full_page)
    browser.choose("[name=only-status]", "build_failed")
    assert count(browser) > 0
    cells = browser.run("""
        return [...document.querySelectorAll('#points-body tbody tr')].map(
          (row) => [...row.querySelectorAll('.unknown')].map((e) => e.title));""")
    assert all("build_failed: no seed of 64 gave a solution" in titles for titles in cells)
    assert all(title for titles in cells for title in titles)


def _column(browser, key):
    """The numbers of a column on the page that is seen, None for a dash."""
    place = browser.run("""
        return [...document.querySelectorAll('#points-body thead button')].findIndex(
          (button) => button.dataset.key === arguments[0]);""", key)
    texts = browser.run("return [...document.querySelectorAll('#points-body tbody tr')].map("
                        "(row) => row.cells[arguments[0]].textContent)", place)
    return [None if text == "\u2013" else float(text) for text in texts]


def test_the_table_sorts_with_keys_and_unknown_stands_last(browser, full_page, full_run_path):
    browser.open(full_page)
    head = "#points-body thead [data-key=ns_per_op]"
    times = sorted(e["ns_per_op"]["median"] for e in entries(full_run_path).values()
                   if e["ns_per_op"])
    focus(browser, head)
    browser.keys("\ue007")  # enter
    assert _column(browser, "ns_per_op")[0] == float(headline.number(times[0]))
    assert browser.run("return document.querySelector(arguments[0]).closest('th').ariaSort",
                       head) == "ascending"
    assert browser.run("return document.activeElement.dataset.key") == "ns_per_op"
    browser.keys(" ")
    assert _column(browser, "ns_per_op")[0] == float(headline.number(times[-1]))
    browser.click("#points-body .pager [aria-label='last page']")
    assert _column(browser, "ns_per_op")[-1] is None


def test_only_a_page_of_rows_is_in_the_document(browser, full_page):
    browser.open(full_page)
    assert count(browser) > 500 and len(rows(browser)) == 50
    first = rows(browser)
    browser.click("#points-body .pager [aria-label='next page']")
    assert not set(first) & set(rows(browser))


def _check_tip(shown, known):
    entry = known[shown["point"]]
    time = entry["ns_per_op"]
    low, high = (headline.number(time[name]) for name in ("low", "high"))
    assert shown["ns/key"] == f"{headline.number(time['median'])} ns [{low}, {high}]"
    assert re.sub(r"\D", "", shown["keys"]) == str(entry["point"]["keys"])
    assert shown["mode"].startswith(f"{entry['point']['mode']}, {entry['point']['target']}")
    if entry["point"]["filter"] not in ("hash_only", "touch_lines"):
        assert shown["FPR"] == headline.number(100 * entry["fpr"]["measured"]) + " %"


def test_hovering_shows_the_numbers_of_the_summary(browser, full_page, full_run_path):
    browser.open(full_page)
    known = entries(full_run_path)
    focus(browser, f"{LOOKUPS} .chart")
    places = {}
    for _ in range(25):
        browser.keys("\ue014")  # arrow right
        places[tip(browser)["point"]] = ring(browser)
    assert len(places) == 25
    browser.keys("\ue00c")  # escape
    hit = 0
    for point, place in places.items():
        browser.mouse("mouseMoved", 5, 5)
        assert tip(browser) is None
        browser.mouse("mouseMoved", *place)
        shown = tip(browser)
        _check_tip(shown, known)
        hit += shown["point"] == point
        # Another point may lie upon it.
        assert ring(browser) == pytest.approx(place, abs=1)
    assert hit >= 20


def test_arrow_keys_reach_every_point(browser, full_page, full_run_path):
    browser.open(full_page)
    known = entries(full_run_path)
    focus(browser, f"{LOOKUPS} .chart")
    seen, order = set(), []
    for _ in range(200):
        browser.keys("\ue014")
        shown = tip(browser)
        if shown["point"] in seen:
            break
        _check_tip(shown, known)
        seen.add(shown["point"])
        order.append(shown["point"])
    assert len(seen) > 25
    live = browser.texts(f"{LOOKUPS} [aria-live]")[0]
    assert tip(browser)["point"] in live
    # Enter shows it in full, and escape leads back to where it was.
    point = tip(browser)["point"]
    browser.keys("\ue007")
    assert browser.texts("dialog[open] [data-key=point_id]") == [point]
    browser.keys("\ue00c")
    assert browser.all("dialog[open]") == []
    assert point in rows(browser)


def test_a_filter_is_hidden_everywhere(browser, full_page, full_run_path):
    browser.open(full_page)
    known = entries(full_run_path)
    focus(browser, f"{LOOKUPS} .chart")
    paths = f"return document.querySelectorAll('{LOOKUPS} .canvas svg path').length"
    before = browser.run(paths)
    browser.run("[...document.querySelectorAll('#legend legend label')].find((e) => "
                "e.textContent === 'Bloom').querySelector('input').click()")
    gone = {e["point"]["filter"] for e in known.values()
            if looks.family(e["point"]["filter"]) == "Bloom"}
    assert {"classic_bloom", "km_bloom", "blocked_bloom"} <= gone
    assert count(browser) == sum(e["point"]["filter"] not in gone for e in known.values())
    assert browser.run(paths) < before
    pressed = browser.run(f"return [...document.querySelectorAll('{LOOKUPS} .series button')].map("
                          "(b) => [b.textContent, b.ariaPressed])")
    off = {text.split(",")[0] for text, state in pressed if state == "false"}
    assert off and off == gone & {text.split(",")[0] for text, _ in pressed}
    headlines = browser.run("return [...document.querySelectorAll('.headline tr[data-filter]')]"
                            ".filter((e) => !e.hidden).map((e) => e.cells[0].textContent)")
    assert headlines and not gone & set(headlines)
    # By a legend below a figure it comes back, in the others too.
    browser.run(f"[...document.querySelectorAll('{LOOKUPS} .series button')].find((b) => "
                "b.textContent === 'blocked_bloom').click()")
    assert count(browser) == sum(e["point"]["filter"] not in gone - {"blocked_bloom"}
                                 for e in known.values())


def _labels(browser, figure):
    return browser.run("return [...document.querySelectorAll(arguments[0] + ' .canvas text')].map("
                       "(e) => e.textContent)", figure)


def test_dragging_zooms_and_a_button_resets(browser, full_page):
    browser.open(full_page)
    focus(browser, f"{LOOKUPS} .chart")
    before = _labels(browser, LOOKUPS)
    box = browser.run("""
        const box = document.querySelector(arguments[0] + ' .chart').getBoundingClientRect();
        return [box.x, box.y, box.width, box.height];""", LOOKUPS)
    browser.drag((box[0] + 0.4 * box[2], box[1] + 0.3 * box[3]),
                 (box[0] + 0.6 * box[2], box[1] + 0.6 * box[3]))
    zoomed = _labels(browser, LOOKUPS)
    assert zoomed != before and len(zoomed) > 4
    browser.click(f"{LOOKUPS} .tool:last-child")
    assert _labels(browser, LOOKUPS) == before
    browser.keys("+")
    assert _labels(browser, LOOKUPS) != before
    browser.keys("0")
    assert _labels(browser, LOOKUPS) == before


def test_choices_of_a_figure_change_what_it_shows(browser, full_page, full_run_path):
    browser.open(full_page)
    known = entries(full_run_path)
    browser.choose(f"{LOOKUPS} [name=mode]", "lookup_single")
    browser.choose(f"{LOOKUPS} [name=target]", "scalar")
    focus(browser, f"{LOOKUPS} .chart")
    browser.keys("\ue014")
    point = known[tip(browser)["point"]]["point"]
    assert (point["mode"], point["target"]) == ("lookup_single", "scalar")
    space = '[data-figure="space_vs_speed"]'
    focus(browser, f"{space} .chart")
    browser.keys("\ue014")
    shown = tip(browser, space)
    assert "interpolated" in shown["how"] or "nearest" in shown["how"]
    assert all(point in known for point in shown[
        "points" if "points" in shown else "point"].split())


def test_downloads_hold_all_points(browser, full_page, full_run_path, tmp_path):
    browser.open(full_page)
    known = entries(full_run_path)
    buttons = "#points-body .downloads button"
    name, content = browser.download(tmp_path / "json", lambda: browser.click(
        f"{buttons}:nth-of-type(2)"))
    assert name == f"filterbench-{testing.RUN_NAME}-points.json"
    document = json.loads(content)
    assert {point["point_id"] for point in document["points"]} == known.keys()
    for point in document["points"]:
        entry = known[point["point_id"]]
        asked = entry["point"]
        assert point["params"] == asked["params"] and point["status"] == entry["status"]
        assert all(point[key] == asked[key] for key in ("filter", "keys", "mode", "target"))
        for key, value in (("ns_per_op", "median"), ("ns_per_op_low", "low"),
                           ("ns_per_op_high", "high")):
            assert point[key] == (entry["ns_per_op"] and entry["ns_per_op"][value])
        assert point["fpr_measured"] == (entry["fpr"] and entry["fpr"]["measured"])
        assert point["bits_per_key"] == entry["bits_per_key"]
    name, content = browser.download(tmp_path / "csv", lambda: browser.click(
        f"{buttons}:nth-of-type(1)"))
    table = list(csv.DictReader(io.StringIO(content.decode(), newline="")))
    assert name.endswith(".csv") and len(table) == len(known)
    for line, point in zip(table, document["points"]):
        assert line["point_id"] == point["point_id"]
        assert json.loads(line["params"]) == point["params"]
        assert line["ns_per_op"] == "" if point["ns_per_op"] is None else (
            float(line["ns_per_op"]) == point["ns_per_op"])
    # Only what the table shows.
    browser.type("#points-body input[type=search]", "ribbon")
    browser.click("#points-body .downloads input")
    _, content = browser.download(tmp_path / "some", lambda: browser.click(
        f"{buttons}:nth-of-type(2)"))
    assert {p["filter"] for p in json.loads(content)["points"]} == {"ribbon"}
    assert browser.errors() == []


def _ground(browser):
    return browser.run("return getComputedStyle(document.body).backgroundColor")


def _darkness(colour):
    return sum(int(part) for part in re.findall(r"\d+", colour)[:3])


def test_light_and_dark_follow_the_system_and_the_button(browser, full_page):
    browser.open(full_page)
    focus(browser, f"{LOOKUPS} .chart")
    light = _ground(browser)
    text = f"return document.querySelector('{LOOKUPS} .canvas text').getAttribute('fill')"
    light_text = browser.run(text)
    browser.prefer("dark")
    dark = _ground(browser)
    assert _darkness(light) > 600 > 150 > _darkness(dark)
    assert browser.run(text) != light_text
    browser.click("#theme")  # light, whatever the system prefers
    assert _ground(browser) == light and browser.run(text) == light_text
    browser.click("#theme")
    browser.prefer("light")
    assert _ground(browser) == dark
    browser.click("#theme")
    assert _ground(browser) == light


@pytest.mark.parametrize("width", [360, 768])
def test_a_narrow_window_scrolls_in_one_direction_only(browser, full_page, width):
    browser.open(full_page, width=width)
    browser.run("for (const e of document.querySelectorAll('details')) e.open = true")
    assert browser.run("return document.documentElement.scrollWidth") <= width
    wide = browser.run("""
        return [...document.querySelectorAll('body *')].filter((e) =>
          e.getBoundingClientRect().right > innerWidth + 1 && 
          !e.closest('.scroll, .sprite, .skip, .canvas, .tip, pre')).map(
            (e) => e.tagName + '.' + e.getAttribute('class')).slice(0, 5);""")
    assert wide == []
    focus(browser, f"{LOOKUPS} .chart")
    browser.keys("\ue014")
    assert browser.run("""
        const b = document.querySelector(arguments[0] + ' .tip').getBoundingClientRect();
        return b.left >= 0 && b.right <= innerWidth""", LOOKUPS)


def test_a_keyboard_is_enough(browser, full_page):
    browser.open(full_page)
    browser.keys("\ue004")  # tab
    assert browser.run("return document.activeElement.className") == "skip"
    assert browser.run("return document.activeElement.getBoundingClientRect().left") >= 0
    browser.keys("\ue007")
    assert browser.run("return document.activeElement.id") == "main"
    unreachable = browser.run("""
        return [...document.querySelectorAll('.chart, button, input, select, summary')].filter(
          (e) => e.tabIndex < 0).length""")
    assert unreachable == 0
    focus(browser, "#points-body .name")
    outline = "return getComputedStyle(document.activeElement).outlineStyle"
    browser.keys("\ue004")
    assert browser.run(outline) != "none"
    nameless = browser.run("""
        return [...document.querySelectorAll('button, input, select, [role=application]')].filter(
          (e) => !(e.textContent.trim() || e.ariaLabel || e.labels?.length)
        ).map((e) => e.outerHTML)""")
    assert nameless == []


def test_checks_lead_to_their_points(browser, full_page, full_run_path):
    browser.open(full_page)
    browser.click("#check-failed-0 .to-points")
    known = entries(full_run_path)
    status = browser.one("#check-failed-0 .to-points").get_attribute("data-value")
    assert count(browser) == sum(e["status"] == json.loads(status) for e in known.values())
    browser.click("#points-body .toolbar button")
    assert count(browser) == len(known)


def test_names_from_files_are_text(browser, made, tmp_path):
    hostile = ["</script><script>window.owned = 1</script>", "<img src=x onerror='owned=1'>",
               "\"'><b onmouseover=owned=1>", "a\u2028b\u2029c", "$&{{data}}", "<!--<script>",
               "\u202eright to left", "__proto__"]
    points = testing.make_points(filters=hostile, bits_per_key=(8, 12), keys=(1000, 100_000),
                                 failing=False)
    for entry in points[:40]:
        if entry["point"]["filter"] == hostile[0]:
            entry["status"], entry["ns_per_op"] = "wrong_answers", None
            entry["reason"] = "<script>owned = 1</script>"
    manifest = testing.make_manifest(cpu_brand="<script>owned = 1</script>")
    manifest["doctor"] = [{"check": "<b>load</b>", "state": "warn", "found": "</details><script>",
                           "why": "<i>", "remedy": "<u>",
                           "command": "echo '<script>owned = 1</script>'"}]
    path = testing.write_run(tmp_path / "run", points, manifest=manifest)
    browser.open(write_page(tmp_path, made, path))
    assert browser.errors() == []
    assert browser.run("return typeof window.owned") == "undefined"
    assert browser.all("main b[onmouseover], main img") == []
    assert browser.texts("h1") == ["<script>owned = 1</script>"]
    options = browser.texts("[name=only-filter] option")
    assert {*hostile} <= {*options}
    browser.type("#points-body input[type=search]", "<img")
    assert count(browser) == sum(e["point"]["filter"] == hostile[1] for e in points)
    focus(browser, f"{LOOKUPS} .chart")
    for _ in range(12):
        browser.keys("\ue014")
    assert browser.errors() == [] and browser.run("return typeof window.owned") == "undefined"


def _second_run(tmp_path, machine=None, **change):
    manifest = testing.make_manifest()
    manifest["run"] = "20261201T000000Z-ba9876543210-89abcdef"
    manifest["spec"]["measure"] = {"processes": 3, "rounds": 2}
    if machine:
        manifest["machine"] = machine
        manifest["environment"]["cpu"]["brand"] = "Other CPU 7"
    points = testing.on_machine(copy.deepcopy(testing.tiny_points()), **change)
    return testing.write_run(tmp_path / "second", points, manifest=manifest)


def test_two_runs_of_one_machine_are_compared(browser, made, tiny_run_path, tmp_path):
    second = _second_run(tmp_path, times={"cuckoo": 2.0})
    browser.open(write_page(tmp_path, made, tiny_run_path, second))
    assert browser.errors() == []
    shown = "return [...document.querySelectorAll('#machine .run')].map((e) => e.hidden)"
    assert browser.run(shown) == [False, True]
    browser.choose("#run", "1")
    assert browser.run(shown) == [True, False]
    assert "20261201T000000Z" in browser.one("#machine").text
    for quantity in ("ns/key", "FPR", "bits/key"):
        browser.type(".pair-table input", quantity)
        assert set(browser.run("""
            return [...document.querySelectorAll('.pair-table tbody tr')].map(
              (row) => row.cells[7].textContent);""")) == {quantity}
    assert "filterbench compare" in browser.one("#comparison").text
    browser.type(".pair-table input", "cuckoo ns/key")
    filters = set(browser.run("return [...document.querySelectorAll('.pair-table tbody tr')].map("
                              "(row) => row.cells[1].textContent)"))
    assert filters == {"cuckoo"}


def test_times_of_two_machines_never_stand_side_by_side(browser, made, tiny_run_path, tmp_path):
    second = _second_run(tmp_path, machine="other-cpu-1", times={"cuckoo": 3.0}, everything=2.0)
    browser.open(write_page(tmp_path, made, tiny_run_path, second))
    lines = browser.run("return [...document.querySelectorAll('.pair-table tbody tr')].map("
                        "(row) => [...row.cells].map((c) => c.textContent))")
    assert lines and {line[7] for line in lines} == {"\u00d7 floor"}
    # Each time over its own machine's floor, as the two summaries have it.
    known = [[headline.number(e["floor"]["ratio"]) for e in entries(path).values() if e["floor"]]
             for path in (tiny_run_path, second)]
    for line in lines:
        assert line[8] in known[0] and line[9] in known[1]
        if line[1] == "cuckoo":
            assert float(line[10]) == pytest.approx(3.0, rel=0.01)
    assert "nothing is judged" in browser.one("#comparison").text


def test_an_unfinished_run_says_so(browser, made, tmp_path):
    path = testing.write_run(tmp_path / "run", testing.tiny_points(), complete=False)
    browser.open(write_page(tmp_path, made, path))
    assert "incomplete" in browser.texts(".subtitle")[0]
    assert "not finished" in browser.one("#checks").text
