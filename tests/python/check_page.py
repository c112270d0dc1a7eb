"""Opens a report in Chromium and checks its behavior and layout, narrow and wide, in light and dark mode.

    check_page.py REPORT [HOSTILE-WORD]

No vendor text runs, nothing is loaded, nothing overflows, and every plot can be read by keyboard.
"""

import sys
from pathlib import Path

from browser import Browser

# Texts that overflow their block, the window, or their plot.
OVERFLOWS = """
(() => {
  const beyond = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const width = document.documentElement.clientWidth;
  for (let node; (node = walker.nextNode()); ) {
    const parent = node.parentElement;
    if (!node.data.trim() || parent.closest("script, style, [hidden]")) continue;
    let block = parent;
    while (getComputedStyle(block).display.startsWith("inline") && !block.closest("svg")) block = block.parentElement;
    const box = (parent.closest("svg") ?? block).getBoundingClientRect();
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const text of range.getClientRects()) {
      if (text.width === 0) continue;
      const outside = text.right > box.right + 1.5 || text.left < box.left - 1.5;
      if (outside || text.right > width + 0.5 || text.left < -0.5)
        beyond.push([node.data.trim().slice(0, 60), text.left, text.right, box.left, box.right]);
    }
  }
  for (const element of document.querySelectorAll("body *:not(svg *)"))
    if (element.clientWidth > 0 && element.scrollWidth > element.clientWidth + 1)
      beyond.push([element.tagName + "." + element.className, element.scrollWidth, element.clientWidth]);
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) beyond.push(["the page", root.scrollWidth, root.clientWidth]);
  return beyond;
})()
"""

PLOTS = """
[...document.querySelectorAll("svg.plot")].map((plot) => ({
  id: plot.id,
  name: plot.getAttribute("aria-label"),
  role: plot.getAttribute("role"),
  reachable: plot.tabIndex === 0,
  marks: plot.querySelectorAll("[data-v]").length,
  silent: [...plot.querySelectorAll("[data-v]")].filter((mark) => !mark.dataset.v).length,
  outside: [...plot.querySelectorAll("[data-v]")].filter((mark) => {
    const box = mark.getBoundingClientRect(), whole = plot.getBoundingClientRect();
    return box.left < whole.left - 1 || box.right > whole.right + 1 || box.top < whole.top - 1 || box.bottom > whole.bottom + 1;
  }).length,
}))
"""

FOREIGN = """
({
  scripts: document.scripts.length,
  handlers: [...document.querySelectorAll("*")].filter((it) => [...it.attributes].some((at) => /^on/i.test(at.name))).length,
  links: [...document.querySelectorAll("a:not([href^='#'])")].map((link) => link.protocol),
  astray: [...document.querySelectorAll("a[href^='#']")].filter((link) => !document.getElementById(link.hash.slice(1))).length,
  fetching: document.querySelectorAll("img, iframe, object, embed, link, audio, video, base, form, image, use, foreignObject").length,
  styled: document.querySelectorAll("[style]").length,
  touched: Object.keys(window).filter((name) => name.startsWith("hostile")),
  text: document.body.textContent,
})
"""

page = Path(sys.argv[1])
assert page.stat().st_size < 2_000_000, page.stat().st_size
with Browser() as browser:
    for width, scheme in ((390, "light"), (390, "dark"), (800, "light"), (1400, "light"), (1400, "dark")):
        browser.open(page, width, scheme)
        browser.evaluate("document.querySelector('details').open = true")

        asked = {event["request"]["url"] for event in browser.seen("Network.requestWillBeSent")}
        assert asked == {page.resolve().as_uri()}, asked
        assert not browser.seen("Page.javascriptDialogOpening")
        assert not browser.seen("Runtime.exceptionThrown"), browser.seen("Runtime.exceptionThrown")
        complaints = [event["entry"] for event in browser.seen("Log.entryAdded")]
        assert not complaints, complaints

        found = browser.evaluate(FOREIGN)
        assert (found["scripts"], found["handlers"], found["fetching"], found["styled"]) == (1, 0, 0, 0), found
        assert set(found["links"]) <= {"http:", "https:"} and not found["touched"], found
        assert found["astray"] == 0, "an anchor leads nowhere"
        for word in sys.argv[2:]:
            assert word in found["text"], f"{word} is shown as it was written"

        overflows = browser.evaluate(OVERFLOWS)
        assert not overflows, (width, overflows[:20])

        # The rows of a table that is to be compared stay rows.
        assert not browser.evaluate("[...document.querySelectorAll('table.compared tr')].filter((row) => getComputedStyle(row).display !== 'table-row').length")

        plots = browser.evaluate(PLOTS)
        assert len({plot["id"] for plot in plots}) == len(plots) >= 5, plots
        for plot in plots:
            assert plot["name"] and plot["role"] == "img" and plot["reachable"] and plot["marks"] > 0, plot
            assert plot["silent"] == 0 and plot["outside"] == 0, plot

    # One ticker: what is known of it appears once it is typed, and of another nothing.
    typed = """((name) => {
      const search = document.getElementById("search");
      search.value = name;
      search.dispatchEvent(new Event("input"));
      return [document.querySelectorAll("#found table").length, document.getElementById("found").textContent];
    })"""
    first = browser.evaluate("document.querySelector('#names option').value")
    tables, told = browser.evaluate(f"{typed}({first.lower()!r})")
    assert tables > 0 and told, (first, told)
    tables, told = browser.evaluate(f"{typed}('No such ticker')")
    assert tables == 0 and told == "No such ticker is not in this page.", told
    browser.evaluate(f"{typed}('')")

    # By keyboard: Tab reaches each plot in turn, and the arrow keys show the labels of its marks.
    reached = []
    for _ in range(len(plots) * 2 + 40):
        browser.press("Tab")
        here = browser.evaluate("document.activeElement.matches('svg.plot') ? document.activeElement.id : ''")
        if not here or here in reached:
            continue
        reached.append(here)
        browser.press("Home")
        told = "document.getElementById('tip').hidden ? null : document.getElementById('tip').textContent"
        marks = browser.evaluate("[...document.activeElement.querySelectorAll('[data-v]')].map((mark) => mark.dataset.v)")
        assert browser.evaluate(told) == marks[0], here
        browser.press("ArrowRight")
        assert browser.evaluate(told) == marks[min(1, len(marks) - 1)], here
        browser.press("Escape")
        assert browser.evaluate(told) is None
    assert reached == [plot["id"] for plot in plots], (reached, plots)
print(f"{len(plots)} plots, nothing foreign runs, nothing overflows")
