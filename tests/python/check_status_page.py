"""Opens the status page in Chromium, narrow and wide, in light and dark mode.

It loads and runs nothing, violates no policy, does not overflow, breaks no word, has a square for each of the last 90 days of
what was run, and a color of its own for each state.
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
  // Words are broken after hyphens and the parts of paths alone.
  cut: (() => {
    const cut = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let text; (text = texts.nextNode());) {
      for (const word of text.data.matchAll(/[^\s-]+/g)) {
        const range = document.createRange();
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map((line) => Math.round(line.top))).size > 1) cut.push(word[0]);
      }
    }
    return cut;
  })(),
  colors: [...document.querySelectorAll("#definitions .state")].map((state) => [state.textContent, getComputedStyle(state).color]),
  paper: getComputedStyle(document.body).backgroundColor,
  beyond: [...document.querySelectorAll("td, dd, li, h1, h2, p")].filter((it) => it.scrollWidth > it.clientWidth + 1).length,
})
"""



def luminance(color):
    """The relative luminance of a color such as `rgb(28, 29, 31)`, as WCAG 2 defines it."""
    parts = [int(part) / 255 for part in color[4:-1].split(",")]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


page = Path(sys.argv[1])
with Browser() as browser:
    for width in (360, 700, 1280):
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
            assert not facts["cut"], (width, facts["cut"])
            colors = dict(facts["colors"])
            assert len(set(colors.values())) == len(colors) >= 4, colors
            for color in colors.values():
                one, other = sorted([luminance(color), luminance(facts["paper"])])
                assert (other + 0.05) / (one + 0.05) >= 4.5, (scheme, colors, facts["paper"])
            order = ["failing", "stale", "unknown", "fresh", "not run yet"]
            ranks = [(order.index(verdict), name) for name, verdict in facts["table"]]
            was_run = [name for name, verdict in facts["table"] if verdict != "not run yet"]
            assert len(was_run) == len(facts["squares"]) and ranks == sorted(ranks), facts["table"]
            # Sections in the same order, with the names of the definitions as they are written.
            assert facts["names"] == [[name, "none"] for name, _ in facts["table"]], facts["names"]
            assert facts["squares"] and set(facts["squares"]) == {90} and facts["named"], facts
