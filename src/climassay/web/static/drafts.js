// Keeps what was typed or chosen in a form and not sent yet, in this browser, until it is sent or discarded.
// A form with the attribute data-keep is kept under its user, its address and its id.
"use strict";

const drafts = (() => {
  const PREFIX = "climassay-draft";
  const SENT = "climassay-sent-draft";
  const MAX_AGE = 30 * 24 * 3600 * 1000; // milliseconds
  const rendered = new WeakMap();

  function keyOf(form, user) {
    return [PREFIX, user, new URL(form.action).pathname, form.id].join(" ");
  }

  const fields = (form) => [...form.elements].filter((field) => field.name && field.type !== "hidden" && field.type !== "submit");
  const isChoice = (field) => field.type === "radio" || field.type === "checkbox";

  // The content of a form as [name, value] pairs, without what the server wrote into it.
  function content(form) {
    const names = new Set(fields(form).map((field) => field.name));
    return [...new FormData(form)].filter(([name]) => names.has(name));
  }

  const differs = (first, second) => JSON.stringify(first) !== JSON.stringify(second);

  function isChanged(form, ignored = "") {
    const others = (pairs) => pairs.filter(([name]) => name !== ignored);
    return differs(others(content(form)), others(rendered.get(form) ?? []));
  }

  // A form is unsent if the server has rendered what was typed in it without storing it.
  function save(form, user) {
    try {
      if ("unsent" in form.dataset || isChanged(form)) localStorage.setItem(keyOf(form, user), JSON.stringify({ at: Date.now(), pairs: content(form) }));
      else localStorage.removeItem(keyOf(form, user));
    } catch {
      // Without storage, or with a full one, a draft lives as long as its page.
    }
  }

  function load(key) {
    try {
      const draft = JSON.parse(localStorage.getItem(key) || "null");
      if (draft && Date.now() - draft.at < MAX_AGE) return draft.pairs;
      localStorage.removeItem(key);
    } catch {
      // Nothing can be read.
    }
    return null;
  }

  // Fills a form with its draft and returns true if that changes it. Returns the pairs if the form has too few fields.
  function restore(form, user) {
    rendered.set(form, content(form));
    const pairs = load(keyOf(form, user));
    if (!pairs || !differs(pairs, content(form))) return false;
    const values = new Map();
    for (const [name, value] of pairs) values.set(name, [...(values.get(name) ?? []), value]);
    const texts = fields(form).filter((field) => !isChoice(field));
    for (const [name, saved] of values) {
      const count = texts.filter((field) => field.name === name).length;
      if (count && saved.length > count) return pairs;
    }
    for (const field of fields(form)) {
      const saved = values.get(field.name) ?? [];
      if (isChoice(field)) field.checked = saved.includes(field.value);
      else if (saved.length) field.value = saved.shift();
    }
    return isChanged(form);
  }

  function forget(keys) {
    for (const key of keys) localStorage.removeItem(key);
  }

  // A form that leaves the page is forgotten once the next page says that something was done.
  function leave(form, user) {
    sessionStorage.setItem(SENT, keyOf(form, user));
  }

  function arrive(isDone) {
    for (const key of Object.keys(localStorage)) if (key.startsWith(`${PREFIX} `)) load(key);
    if (isDone && sessionStorage.getItem(SENT)) forget([sessionStorage.getItem(SENT)]);
    sessionStorage.removeItem(SENT);
  }

  return { arrive, forget, isChanged, keyOf, leave, restore, save };
})();
