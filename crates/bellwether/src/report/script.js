"use strict";
// Shows the value of the mark under the pointer or reached by the arrow keys. Without it the page lacks only these
// tooltips.
const tip = document.getElementById("tip");
let shown = null;

function hide() {
  if (shown) shown.classList.remove("on");
  shown = null;
  tip.hidden = true;
}

function show(mark) {
  if (mark === shown) return;
  hide();
  if (!mark) return;
  shown = mark;
  mark.classList.add("on");
  tip.textContent = mark.dataset.v;
  tip.hidden = false;
  const box = mark.getBoundingClientRect();
  const width = tip.offsetWidth, height = tip.offsetHeight;
  const left = Math.min(Math.max(8, box.left + box.width / 2 - width / 2), document.documentElement.clientWidth - width - 8);
  const above = box.top - height - 8;
  tip.style.transform = `translate(${left}px, ${above > 4 ? above : box.bottom + 8}px)`;
}

for (const plot of document.querySelectorAll("svg.plot")) {
  const marks = [...plot.querySelectorAll("[data-v]")];
  const columns = Number(plot.dataset.columns) || marks.length;
  const last = marks.length - 1;
  // The mark under the pointer, or else the nearest one in its row.
  const nearest = (event) => {
    const own = event.target.closest("[data-v]");
    if (own) return own;
    if (columns < marks.length && marks.length > 2 * columns) return null;
    const distance = (mark) => {
      const box = mark.getBoundingClientRect();
      const across = Math.max(box.left - event.clientX, event.clientX - box.right, 0);
      return across + Math.max(box.top - event.clientY, event.clientY - box.bottom, 0) / 1000;
    };
    let best = null, least = 24;
    for (const mark of marks) {
      const away = distance(mark);
      if (away < least) [best, least] = [mark, away];
    }
    return best;
  };
  plot.addEventListener("pointermove", (event) => show(nearest(event)));
  plot.addEventListener("pointerdown", (event) => show(nearest(event)));
  plot.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") hide(); });
  plot.addEventListener("blur", hide);
  plot.addEventListener("focus", () => { if (plot.matches(":focus-visible")) show(marks[last]); });
  plot.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns, Home: -Infinity, End: Infinity };
    if (event.key === "Escape") return hide();
    if (!(event.key in steps) || last < 0) return;
    event.preventDefault();
    const at = marks.indexOf(shown);
    const next = (at < 0 ? last : at) + steps[event.key];
    if (Number.isFinite(next) && (next < 0 || next > last)) return;
    show(marks[Math.min(Math.max(next, 0), last)]);
  });
}
addEventListener("scroll", () => { if (!document.activeElement.matches("svg.plot")) hide(); }, { passive: true });

// One ticker: its last signals, its last articles and its revisions, from the table in the page.
const data = JSON.parse(document.getElementById("data").textContent);
const search = document.getElementById("search"), found = document.getElementById("found");

function element(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function rowsOf(heads, rows) {
  const table = element("table", null, "compared"), head = element("tr");
  for (const [name, kind] of heads) head.append(element("th", name, kind));
  table.append(head);
  for (const cells of rows) {
    const row = element("tr");
    cells.forEach((cell, index) => {
      const of = element("td", cell instanceof Node ? null : cell, heads[index][1]);
      if (cell instanceof Node) of.append(cell);
      row.append(of);
    });
    table.append(row);
  }
  return table;
}

const signed = (number) => (number === null ? "-" : (number < 0 ? "" : "+") + number);

function lookUp() {
  found.replaceChildren();
  const name = search.value.trim().toUpperCase();
  if (!name) return;
  const key = Object.keys(data.tickers).find((ticker) => ticker.toUpperCase() === name);
  if (!key) return found.append(element("p", `${search.value.trim()} is not in this page.`, "cut"));
  const [signals, articles, revisions] = data.tickers[key];
  if (signals.length) {
    const heads = [["pair"], ["date"], ["score", "number"], ["moved", "number"]];
    found.append(rowsOf(heads, signals.map(([pair, day, score, moved]) => [data.pairs[pair], day, signed(score), signed(moved)])));
  }
  const headline = ([, , title, link]) => {
    if (!link) return element("bdi", title);
    const to = element("a");
    to.href = link;
    to.rel = "noopener noreferrer nofollow";
    to.append(element("bdi", title));
    return to;
  };
  if (articles.length)
    found.append(rowsOf([["date"], ["article"], ["score", "number"]], articles.map((it) => [it[0], headline(it), signed(it[1])])));
  for (const [what, changed, known] of revisions) found.append(element("p", `${changed} of ${known} ${what} changed after they were first seen.`, "cut"));
}

for (const name of Object.keys(data.tickers)) {
  const option = element("option");
  option.value = name;
  document.getElementById("names").append(option);
}
search.addEventListener("input", lookUp);
