// Tables that can be sorted and filtered, and results that follow their page. Pages work without it.
"use strict";

const words = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
const LEAST_TO_FILTER = 6;

// The number that a cell begins with; null where there is none. "<0.001" comes before 0.001.
function numberOf(text) {
  const plain = text.trim().replaceAll(",", "").replaceAll("\u2212", "-");
  const found = /^([<>])?[\u2265\u2264~$]?\s*([+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)/i.exec(plain);
  if (!found) return null;
  return Number(found[2]) + (found[1] === "<" ? -1e-9 : found[1] === ">" ? 1e-9 : 0);
}

function isMissing(text) {
  return ["", "-", "\u2013"].includes(text.trim());
}

function compare(first, second, numeric) {
  if (numeric) {
    const a = numberOf(first), b = numberOf(second);
    if (a !== null && b !== null) return a - b;
    if (a !== null || b !== null) return a !== null ? -1 : 1;
  }
  return words.compare(first, second);
}

// Rows in the order of a column; cells without a value stay at the end whatever the direction.
function sorted(rows, column, numeric, direction) {
  const cell = row => row.cells[column]?.textContent ?? "";
  return [...rows].sort((one, other) => {
    const a = cell(one), b = cell(other);
    const gap = isMissing(a) - isMissing(b);
    return gap || direction * compare(a, b, numeric);
  });
}

function makeSortable(table, tell) {
  const body = table.tBodies[0], original = [...body.rows];
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const numeric = heading.classList.contains("right");
      const [first, second] = numeric ? ["descending", "ascending"] : ["ascending", "descending"];
      const next = { [first]: second, [second]: "none" }[heading.getAttribute("aria-sort")] ?? first;
      for (const other of headings) other.removeAttribute("aria-sort");
      if (next === "none") {
        body.append(...original);
        tell(`Rows in their original order.`);
        return;
      }
      heading.setAttribute("aria-sort", next);
      body.append(...sorted(original, column, numeric, next === "ascending" ? 1 : -1));
      tell(`Sorted by ${button.textContent.trim()}, ${next}.`);
    });
  });
}

function makeFilter(place, table, number) {
  const rows = [...table.tBodies[0].rows];
  const bar = document.createElement("div"), label = document.createElement("label");
  const input = document.createElement("input"), count = document.createElement("output");
  bar.className = "table-filter";
  input.type = "search";
  input.id = label.htmlFor = `filter-${number}`;
  label.textContent = "Filter rows";
  count.setAttribute("aria-live", "polite");
  bar.append(label, input, count);
  place.prepend(bar);
  input.addEventListener("input", () => {
    const wanted = input.value.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      row.hidden = wanted !== "" && !row.textContent.toLowerCase().includes(wanted);
      shown += !row.hidden;
    }
    count.textContent = wanted ? `${shown} of ${rows.length} rows` : "";
  });
}

let tables = 0;
function prepare(root) {
  for (const place of root.querySelectorAll(".result-table")) {
    const table = place.querySelector("table");
    if (!table?.tHead || !table.tBodies[0] || table.tBodies[0].rows.length < 2) continue;
    const news = document.createElement("p");
    news.className = "unseen";
    news.setAttribute("aria-live", "polite");
    place.append(news);
    makeSortable(table, text => { news.textContent = text; });
    if (table.tBodies[0].rows.length >= LEAST_TO_FILTER) makeFilter(place, table, ++tables);
  }
}

// Results that take long to compute: the page is there first, they follow. The piece is made by our own templates.
async function load(place) {
  const note = place.querySelector("p");
  const link = note.querySelector("a");
  note.replaceChildren("The results are being computed ", link);
  link.textContent = "(open without waiting here)";
  place.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(place.dataset.load, { headers: { Accept: "text/html" } });
    if (!answer.ok) throw new Error(String(answer.status));
    const piece = new DOMParser().parseFromString(await answer.text(), "text/html");
    place.replaceChildren(...piece.getElementById("results").childNodes);
    place.dataset.loaded = "";
    prepare(place);
    document.getElementById(location.hash.slice(1))?.scrollIntoView();
  } catch {
    note.replaceChildren("The results could not be fetched. ", link);
    link.textContent = "Show them";
  }
  place.removeAttribute("aria-busy");
}

prepare(document);
for (const place of document.querySelectorAll("[data-load]")) load(place);
