"""A headless browser for the tests of the page."""

import json
import shutil
import tempfile
import time

import pytest

from plots.report import bundle

CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"
_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
          "--disable-background-networking", "--disable-component-update", "--disable-sync",
          "--disable-default-apps", "--disable-extensions", "--hide-scrollbars",
          "--force-prefers-reduced-motion", "--disable-dev-shm-usage")
WIDTH, HEIGHT = 1280, 900


def why_no_browser():
    """Why the page cannot be tried in a browser here, or nothing."""
    try:
        import selenium  # noqa: F401  pylint: disable=import-outside-toplevel,unused-import
    except ImportError:
        return "not installed: python3-selenium"
    for program, package in ((CHROMIUM, "chromium"), (DRIVER, "chromium-driver")):
        if shutil.which(program) is None:
            return f"not installed: {package}"
    return why_no_bundle()


def why_no_bundle():
    try:
        bundle.read()
    except bundle.Missing as missing:
        return str(missing)
    return None


class Browser:
    """Chromium with one page."""

    def __init__(self):
        # Debian's package is there for the tests alone: whoever only collects them needs it not.
        # pylint: disable=import-outside-toplevel
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
        self.profile = tempfile.mkdtemp(prefix="filterbench-browser-")
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for flag in (*_FLAGS, f"--user-data-dir={self.profile}", f"--window-size={WIDTH},{HEIGHT}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service(DRIVER), options=options)
        self.downloads = None

    def close(self):
        self.driver.quit()
        shutil.rmtree(self.profile, ignore_errors=True)

    def open(self, path, width=WIDTH, dark=False):
        """Loads the file anew, as a first visit."""
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False})
        self.prefer("dark" if dark else "light")
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)
        self.driver.get(path.resolve().as_uri())
        self.run("try { localStorage.clear() } catch {}")
        return self

    def prefer(self, scheme):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def one(self, selector):
        return self.driver.find_element("css selector", selector)

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def texts(self, selector):
        return self.run("return [...document.querySelectorAll(arguments[0])].map("
                        "(e) => e.textContent)", selector)

    def click(self, selector):
        """A click by script: what is tried is the page, not the scrolling of the driver."""
        self.run("document.querySelector(arguments[0]).click()", selector)

    def type(self, selector, text):
        field = self.one(selector)
        field.clear()
        field.send_keys(text)

    def choose(self, selector, value):
        self.run("const e = document.querySelector(arguments[0]); e.value = arguments[1];"
                 "e.dispatchEvent(new Event('change'))", selector, value)

    def keys(self, *keys):
        from selenium.webdriver import ActionChains  # pylint: disable=import-outside-toplevel
        chain = ActionChains(self.driver)
        for key in keys:
            chain.send_keys(key)
        chain.perform()

    def mouse(self, kind, x, y):
        """A mouse event at a place of the window, as the operating system would give it."""
        self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {
            "type": kind, "x": x, "y": y, "clickCount": 1,
            "button": "none" if kind == "mouseMoved" else "left",
            "buttons": 1 if kind == "mousePressed" else 0})

    def drag(self, start, end):
        self.mouse("mouseMoved", *start)
        self.mouse("mousePressed", *start)
        for step in (0.3, 0.7, 1.0):
            place = [a + step * (b - a) for a, b in zip(start, end)]
            self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {
                "type": "mouseMoved", "x": place[0], "y": place[1], "button": "left", "buttons": 1})
        self.mouse("mouseReleased", *end)

    def errors(self):
        return [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] in ("SEVERE", "WARNING")]

    def requests(self):
        """The addresses of all that the page has asked for since it was opened."""
        found = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
                parameters = message["params"]
                found.append(parameters.get("url") or parameters["request"]["url"])
        return found

    def download(self, folder, act):
        """The bytes of the one file that `act()` makes the page save."""
        folder.mkdir(parents=True, exist_ok=True)
        self.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {
            "behavior": "allow", "downloadPath": str(folder)})
        act()
        for _ in range(200):
            files = [f for f in folder.iterdir() if f.suffix != ".crdownload"
                     and not f.name.startswith(".")]
            if files and not list(folder.glob("*.crdownload")):
                return files[0].name, files[0].read_bytes()
            time.sleep(0.05)
        pytest.fail("nothing was downloaded")
        return None
