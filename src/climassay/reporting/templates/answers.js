// The filter above the questions of a report.
for (const root of document.querySelectorAll(".browser")) {
  const form = root.querySelector("form"), count = form.querySelector("output");
  const items = [...root.querySelectorAll("details.item")], texts = root.querySelector("details.texts");
  const words = new Map();
  const content = item => words.get(item) ?? words.set(item, item.textContent.toLowerCase()).get(item);
  const apply = () => {
    const wanted = [...form.querySelectorAll("[data-field]")].map(field =>
      [field.dataset.field, field.type === "checkbox" ? field.checked : field.value.trim()]).filter(pair => pair[1]);
    let shown = 0;
    for (const item of items) {
      const keep = wanted.every(([field, value]) => field === "text" ? content(item).includes(value.toLowerCase())
        : field === "wrong" ? Number(item.dataset.wrong) > 0 : item.dataset[field] === value);
      item.hidden = !keep;
      shown += keep;
    }
    const all = Number(count.dataset.all);
    count.textContent = `${shown} of ${items.length} questions${all > items.length ? ` here, ${all} in all` : ""}`;
  };
  const reveal = () => { const place = texts && document.getElementById(location.hash.slice(1)); if (place && texts.contains(place)) { texts.open = true; place.scrollIntoView(); } };
  form.hidden = false;
  form.addEventListener("input", apply);
  form.addEventListener("submit", event => event.preventDefault());
  window.addEventListener("hashchange", reveal);
  apply(); reveal();
}
