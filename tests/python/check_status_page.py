"""Opens the status page in Chromium, narrow and wide, in light and dark mode.

It loads and runs nothing, violates no policy, does not overflow, and has a square for each of the last 90 days.
"""

import sys
from pathlib import Path

from browser import Browser

FACTS = """
({
  scripts: document.scripts.length,
  loading: document.querySelectorAll("img, iframe, object, embed, link, audio, video, base, form").length,
  styled: document.querySelectorAll("[style]").length,
  links: [...document.querySelectorAll("a")].map((link) => link.protocol),
  wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  squares: [...document.querySelectorAll("svg.plot")].map((plot) => plot.querySelectorAll("rect > title").length),
  named: [...document.querySelectorAll("svg.plot")].every((plot) => plot.getAttribute("aria-label")),
  names: [...document.querySelectorAll("h2.verbatim")].map((name) => [name.textContent, getComputedStyle(name).textTransform]),
  table: [...document.querySelectorAll("#definitions tbody tr")].map((row) => [...row.children].slice(0, 2).map((cell) => cell.textContent)),
  first: document.querySelector("main section").id,
  // Each time is on one line.
  broken: [...document.querySelectorAll("td .whole")].filter((time) => time.getClientRects().length > 1).length,
  refresh: document.querySelector("meta[http-equiv=refresh]").content,
  beyond: [...document.querySelectorAll("td, dd, li, h1, h2, p")].filter((it) => it.scrollWidth > it.clientWidth + 1).length,
})
"""

page = Path(sys.argv[1])
with Browser() as browser:
    for width in (390, 1280):
        for scheme in ("light", "dark"):
            browser.open(page, width, scheme)
            asked = [event["request"]["url"] for event in browser.seen("Network.requestWillBeSent")]
            assert asked == [page.resolve().as_uri()], asked
            assert not browser.seen("Log.entryAdded"), browser.seen("Log.entryAdded")
            assert not browser.seen("Runtime.exceptionThrown")
            facts = browser.evaluate(FACTS)
            assert facts["scripts"] == facts["loading"] == facts["styled"] == 0, facts
            assert set(facts["links"]) <= {"file:", "http:", "https:"}, facts
            assert facts["wide"] <= 0 and facts["beyond"] == 0, (width, facts)
            assert facts["first"] == "definitions" and facts["refresh"] == "60" and facts["broken"] == 0, facts
            order = ["failing", "stale", "unknown", "fresh"]
            ranks = [(order.index(verdict), name) for name, verdict in facts["table"]]
            assert len(ranks) == len(facts["squares"]) and ranks == sorted(ranks), facts["table"]
            # Sections in the same order, with the names of the definitions as they are written.
            assert facts["names"] == [[name, "none"] for name, _ in facts["table"]], facts["names"]
            assert facts["squares"] and set(facts["squares"]) == {90} and facts["named"], facts
