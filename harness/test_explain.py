"""`filterbench explain` as a person meets it."""

import json
import os
import pty
import re
import subprocess

import pytest

from harness.testing import NEEDS_PROGRAM, PROGRAM

pytestmark = NEEDS_PROGRAM

BY_HAND = ["--m", 32, "--k", 3, "--positions", "apple=2,14,27", "--positions", "mango=5,11,20",
           "--positions", "kiwi=2,9,20", "--positions", "grape=5,14,27"]
WORKED = [*BY_HAND, "--add", "apple", "--add", "mango", "--ask", "kiwi", "--ask", "grape"]
# What decides how things are drawn, as a script has it.
PLAIN = {"COLUMNS": "", "LC_ALL": "C", "NO_COLOR": "", "TERM": "xterm"}


def explain(*arguments, **variables):
    words = [argument if isinstance(argument, bytes) else str(argument) for argument in arguments]
    return subprocess.run([PROGRAM, "explain", *words], capture_output=True, text=True, timeout=60,
                          check=False, env={**os.environ, **PLAIN, **variables})


def drawn(*arguments, **variables):
    done = explain(*arguments, **variables)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def facts(*arguments):
    """The one scene that the arguments describe."""
    (scene,) = json.loads(drawn(*arguments, "--json"))["scenes"]
    return scene


def has_md5():
    return PROGRAM.exists() and explain("--hash", "md5").returncode == 0


def test_without_arguments_there_is_a_tour():
    text = drawn()
    titles = ["A Bloom filter by hand", "An empty filter", "Saturation",
              "Deleting from a plain Bloom filter"]
    places = [text.index(title + "\n----") for title in titles]
    assert places == sorted(places)
    assert len(json.loads(drawn("--json"))["scenes"]) == len(titles)
    assert max(map(len, text.splitlines())) <= 80
    assert text.isascii() and "\033" not in text


def test_the_worked_example_by_hand_is_the_one_by_name():
    scene = facts(*WORKED)
    assert scene["m"] == 32 and scene["k"] == 3
    assert {key["key"]: key["positions"] for key in scene["added"]} == {
        "apple": [2, 14, 27], "mango": [5, 11, 20]}
    assert scene["set_positions"] == [2, 5, 11, 14, 20, 27] and scene["set_bits"] == 6
    kiwi, grape = scene["asked"]
    assert (kiwi["answer"], kiwi["unset"], kiwi["verdict"]) == ("no", [9], "true negative")
    assert (grape["answer"], grape["unset"], grape["verdict"]) == ("maybe", [], "false positive")
    assert [(probe["position"], probe["keys"]) for probe in grape["probes"]] == [
        (5, ["mango"]), (14, ["apple"]), (27, ["apple"])]
    assert scene["measured_fpr"]["rate"] is None and scene["measured_fpr"]["reason"]
    named = facts("--example", "worked")
    assert [key for key in named["asked"] if key["key"] != "apple"] == scene["asked"]
    text = drawn(*WORKED)
    assert "No, since bit 9 is not set" in text
    assert "But grape was never added: a false positive." in text


def test_options_add_to_an_example():
    scene = facts("--example", "worked", "--positions", "plum=2,3,3", "--add", "plum",
                  "--ask", "mango")
    assert [key["key"] for key in scene["added"]] == ["apple", "mango", "plum"]
    assert scene["set_bits"] == 7  # 2 was set already, 3 counts once
    assert scene["asked"][-1]["key"] == "mango"
    table = facts("--example", "saturation", "--m", 128, "--hash", "km")["saturation"]
    assert table[-1]["keys"] > 8 * 128 / 6 and table[-1]["measured_fpr"]["rate"] > 0.9


def test_md5_windows():
    """printf apple | md5sum begins with 1f..., 27..., b3... in its first three windows."""
    if not has_md5():
        pytest.skip("this build lacks MD5")
    scene = facts("--hash", "md5", "--m", 64, "--k", 3, "--ask", "apple")
    (asked,) = scene["asked"]
    assert asked["md5"] == "1f3870be274f6c49b3e31a0c6728957f"
    assert [probe["position"] for probe in asked["probes"]] == [0x1f, 0x27, 0xb3 % 64]
    assert asked["answer"] == "no" and scene["set_bits"] == 0
    assert facts("--hash", "md5", "--add", "apple")["set_bits"] == 3
    assert "1f3870be 274f6c49 b3e31a0c 6728957f" in drawn("--example", "md5")


def test_a_build_without_md5_says_what_to_install():
    done = explain("--example", "md5")
    if done.returncode != 0:
        assert done.returncode == 2 and "libmd-dev" in done.stderr


def test_deleting_causes_a_false_negative_with_a_name():
    scene = facts("--example", "deletion")
    (removed,) = scene["removed"]
    broken = {key["key"]: key["missing"] for key in removed["broken"]}
    assert "melon" in broken
    (asked,) = [key for key in scene["asked"] if key["key"] == "melon"]
    assert asked["verdict"] == "false negative" and asked["unset"] == broken["melon"]
    assert "BROKEN: melon needs bit" in drawn("--example", "deletion")


def test_expected_lies_near_measured_and_says_how_many_were_asked():
    scene = facts("--m", 1024, *[word for i in range(100) for word in ("--add", f"key{i}")])
    expected, measured = scene["expected_fpr"], scene["measured_fpr"]
    assert measured["absent_keys"] == 100_000
    assert measured["false_positives"] == measured["rate"] * measured["absent_keys"]
    assert measured["low"] < measured["rate"] < measured["high"]
    # Six standard deviations between filters, and the interval of what was counted.
    room = 6 * expected["instance_sd"]
    assert measured["low"] - room < expected["rate"] < measured["high"] + room


KEYS = ["", "two words", "Äpfel", "中文", "-x", "--add", "[a,b]", "{}", "%%", "a=b", "a,b", "#",
        'quote"', "tab\t", "line\n", "\x1b[31mred", "\u202eright", "x" * 5000]


@pytest.mark.parametrize("key", KEYS, ids=ascii)
def test_any_key_can_be_added_and_asked(key):
    arguments = ["--add", key, "--add", "other", "--add", key, "--ask", key]
    scene = facts(*arguments)
    assert [entry["key"] for entry in scene["added"]] == [key, "other", key]
    assert [entry["again"] for entry in scene["added"]] == [False, False, True]
    assert scene["distinct_keys"] == 2
    assert scene["asked"][0]["key"] == key and scene["asked"][0]["verdict"] == "true positive"
    for locale in ("C", "C.UTF-8"):
        text = drawn(*arguments, LC_ALL=locale)
        assert max(map(len, text.splitlines())) <= 80
        assert all(character.isprintable() for character in text.replace("\n", ""))
        assert text.isascii() or locale == "C.UTF-8" and key in ("Äpfel", "中文")
    if "=" not in key:
        by_hand = facts("--positions", f"{key}=1,2,3", "--add", key)
        assert by_hand["set_positions"] == [1, 2, 3]


def test_a_key_of_bytes_that_are_no_utf8():
    text = drawn("--add", b"\xff\xfe", "--ask", b"\xff\xfe")
    assert r'"\xff\xfe"' in text
    assert facts("--add", b"\xff", "--ask", b"\xff")["asked"][0]["key"] == "\ufffd"


@pytest.mark.parametrize("arguments, said", [
    (["--m", 0], "--m 0: must be a whole number of 1..65536"),
    (["--m", -1], "--m -1: must be"),
    (["--m", 65537], "1..65536"),
    (["--m", "1e3"], "--m 1e3: must be"),
    (["--m", ""], '--m "": must be'),
    (["--m", "99999999999999999999"], "must be a whole number"),
    (["--k", 0], "--k 0: must be a whole number of 1..64"),
    (["--k", 65], "1..64"),
    (["--k", "3.5"], "--k 3.5"),
    (["--hash", "sha1"], "--hash sha1: must be one of xxh3, km, md5"),
    (["--hash", "by hand"], "must be one of xxh3, km, md5"),
    (["--example", "nothing"], "must be one of worked, empty, md5, saturation, deletion"),
    (["--example", "\x1b[31m"], r'--example "\x1b[31m": must be one of'),
    (["--width", 5], "--width 5: must be a whole number of 20..500"),
    ([*BY_HAND, "--add", "apple"], "has positions but is not added"),
    ([*WORKED, "--ask", "pear"], "pear has no positions"),
    ([*WORKED, "--hash", "km"], "--hash and --positions"),
    (["--positions", "a=1,2", "--add", "a"], "positions of a: 2 of them, must be k = 3"),
    (["--positions", "a=1,2,64", "--add", "a"], "positions of a: 64 must be below m = 64"),
    (["--positions", "a=1,2,x", "--add", "a"], "x is no position"),
    (["--positions", "a=1,2,-3", "--add", "a"], "-3 is no position"),
    (["--positions", "a=1,2,", "--add", "a"], '"" is no position'),
    (["--positions", "a=", "--add", "a"], '"" is no position'),
    (["--positions", "a", "--add", "a"], "has no ="),
    (["--positions", "a=1,2,3", "--positions", "a=1,2,3"], "given twice"),
    (["--example", "worked", "--hash", "md5", "--k", 5],
     "must be 1..4 with md5" if has_md5() else "lacks MD5"),
    (["--example", "worked", "--m", 16], "must be below m = 16"),
    (["--example", "saturation", "--positions", "a=1,2,3", "--add", "a"], "needs a hash function"),
])
def test_bad_input_is_told(arguments, said):
    for more in ([], ["--json"]):
        done = explain(*arguments, *more)
        assert done.returncode == 2
        assert done.stdout == ""
        assert said in done.stderr
        assert done.stderr.startswith("filterbench: explain: ") and done.stderr.count("\n") == 1


def test_unknown_options_are_refused():
    assert explain("--key", "x").returncode == 2
    assert explain("apple").returncode == 2


@pytest.mark.parametrize("width", [20, 40, 80, 120])
def test_the_width_is_kept(width):
    for given in (drawn("--width", width), drawn(COLUMNS=str(width))):
        assert max(map(len, given.splitlines())) <= width
    # Unusable sizes of a terminal are brought to the limit.
    assert drawn(COLUMNS="3") == drawn("--width", 20)
    assert drawn(COLUMNS="wide") == drawn("--width", 80)


@pytest.mark.parametrize("bits", [1, 8, 65, 4096, 4097, 65536])
def test_any_size_can_be_drawn(bits):
    text = drawn("--m", bits, "--k", 4, "--add", "apple", "--ask", "apple", "--ask", "kiwi")
    assert max(map(len, text.splitlines())) <= 80
    assert len(text.splitlines()) < 110
    assert f"of {bits} bits set" in text


def on_a_terminal(*arguments, **variables):
    """What the program writes where standard output is a terminal."""
    leader, follower = pty.openpty()
    process = subprocess.Popen([PROGRAM, "explain", *map(str, arguments)], stdout=follower,
                               env={**os.environ, **PLAIN, **variables})
    os.close(follower)
    text = b""
    try:
        while part := os.read(leader, 65536):
            text += part
    except OSError:  # Linux tells the end this way
        pass
    os.close(leader)
    assert process.wait(timeout=60) == 0
    return text.decode().replace("\r\n", "\n")


def test_colour_is_for_terminals_that_want_it():
    plain = drawn("--example", "deletion")
    coloured = on_a_terminal("--example", "deletion")
    assert "\033[31m" in coloured
    assert re.sub("\033\\[[0-9]*m", "", coloured) == plain
    assert on_a_terminal("--example", "deletion", NO_COLOR="1") == plain
    assert on_a_terminal("--example", "deletion", TERM="dumb") == plain
    assert "\033" not in on_a_terminal("--example", "deletion", "--json")


def test_the_same_question_gets_the_same_answer():
    arguments = ["--example", "saturation", "--json"]
    assert drawn(*arguments) == drawn(*arguments)
