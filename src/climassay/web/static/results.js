// Sorting and filtering of tables, and results that are loaded after their page. Pages work without it.
"use strict";

const words = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
const MIN_ROWS_TO_FILTER = 6;

// Returns the number that a cell begins with, or null if there is none. "<0.001" comes before 0.001.
function numberOf(text) {
  const plain = text.trim().replaceAll(",", "").replaceAll("\u2212", "-");
  const match = /^([<>])?[\u2265\u2264~$]?\s*([+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)/i.exec(plain);
  if (!match) return null;
  return Number(match[2]) + (match[1] === "<" ? -1e-9 : match[1] === ">" ? 1e-9 : 0);
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

// Returns the rows sorted by a column; cells without a value come last in both directions.
function sorted(rows, column, numeric, direction) {
  const cell = row => row.cells[column]?.textContent ?? "";
  return [...rows].sort((first, second) => {
    const a = cell(first), b = cell(second);
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

function makeFilter(container, table, number) {
  const rows = [...table.tBodies[0].rows];
  const bar = document.createElement("div"), label = document.createElement("label");
  const input = document.createElement("input"), count = document.createElement("output");
  bar.className = "table-filter";
  input.type = "search";
  input.id = label.htmlFor = `filter-${number}`;
  label.textContent = "Filter rows";
  count.setAttribute("aria-live", "polite");
  bar.append(label, input, count);
  container.prepend(bar);
  input.addEventListener("input", () => {
    const query = input.value.trim().toLowerCase();
    let visibleRows = 0;
    for (const row of rows) {
      row.hidden = query !== "" && !row.textContent.toLowerCase().includes(query);
      visibleRows += !row.hidden;
    }
    count.textContent = query ? `${visibleRows} of ${rows.length} rows` : "";
  });
}

let tables = 0;
function prepare(root) {
  for (const container of root.querySelectorAll(".result-table")) {
    const table = container.querySelector("table");
    if (!table?.tHead || !table.tBodies[0] || table.tBodies[0].rows.length < 2) continue;
    const news = document.createElement("p");
    news.className = "unseen";
    news.setAttribute("aria-live", "polite");
    container.append(news);
    makeSortable(table, text => { news.textContent = text; });
    if (table.tBodies[0].rows.length >= MIN_ROWS_TO_FILTER) makeFilter(container, table, ++tables);
  }
}

// Loads results that take long to compute. The server renders them with its own templates.
async function load(container) {
  const note = container.querySelector("p");
  const link = note.querySelector("a");
  note.replaceChildren("The results are being computed ", link);
  link.textContent = "(open without waiting here)";
  container.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(container.dataset.load, { headers: { Accept: "text/html" } });
    if (!answer.ok) throw new Error(String(answer.status));
    const piece = new DOMParser().parseFromString(await answer.text(), "text/html");
    container.replaceChildren(...piece.getElementById("results").childNodes);
    container.dataset.loaded = "";
    prepare(container);
    document.getElementById(location.hash.slice(1))?.scrollIntoView();
  } catch {
    note.replaceChildren("The results could not be fetched. ", link);
    link.textContent = "Show them";
  }
  container.removeAttribute("aria-busy");
}

prepare(document);
for (const container of document.querySelectorAll("[data-load]")) load(container);
