// Labelling with single keys, without page loads, and without losing a label if the connection is lost.
// Everything works without this file, by plain forms.
"use strict";

(() => {
  const PENDING_LABEL = "climassay-kept-label";
  const KEYS = "climassay-keys";
  const WAITS = [1, 2, 4, 8, 15, 30];
  const typing = "textarea, select, input:not([type=radio], [type=checkbox])";

  const news = document.createElement("div");
  news.className = "annotate-news";
  news.setAttribute("role", "status");
  news.setAttribute("aria-live", "polite");
  document.body.append(news);

  let busy = false;
  let spent = 0;
  let since = 0;
  let hiding = 0;
  let here = location.pathname;

  const area = () => document.querySelector("[data-annotate]");
  const find = (selector) => document.querySelector(`[data-annotate] ${selector}`);

  function say(words, trouble = false, ...links) {
    clearTimeout(hiding);
    news.classList.toggle("trouble", trouble);
    news.replaceChildren(words, ...links);
    if (!trouble) hiding = setTimeout(() => (news.textContent = ""), 4000);
  }

  // Time counts while the page is visible.
  function seconds() {
    return spent + (since ? performance.now() - since : 0);
  }

  function watch() {
    if (document.hidden) {
      spent = seconds();
      since = 0;
    } else if (!since) {
      since = performance.now();
    }
  }

  function begin() {
    const page = area();
    if (!page) return false;
    spent = 0;
    since = document.hidden ? 0 : performance.now();
    const keys = find("#keys");
    const button = find("[data-show-keys]");
    if (button && keys) {
      button.hidden = false;
      button.addEventListener("click", () => keys.showModal());
    }
    const box = find("[data-keys-on]");
    if (box) {
      box.checked = keysAreOn();
      box.addEventListener("change", () => {
        localStorage.setItem(KEYS, box.checked ? "on" : "off");
        page.dataset.keys = box.checked ? "on" : "off";
      });
    }
    page.dataset.keys = keysAreOn() ? "on" : "off";
    for (const link of page.querySelectorAll("[data-open]")) {
      link.addEventListener("click", (event) => {
        event.preventDefault();
        open(link.dataset.open);
      });
    }
    find("[data-discard]")?.addEventListener("click", discardWording);
    return restoreDrafts();
  }

  // ---- what was typed or chosen and not sent yet ----------------------------------------------------------------

  const user = () => area().dataset.user;

  function restoreDrafts() {
    let isRestored = false;
    for (const form of area().querySelectorAll("form[data-keep]")) {
      const restored = drafts.restore(form, user());
      if (!restored) continue;
      isRestored = true;
      // A rubric has rows that the page lacks: the server renders them.
      if (restored !== true) renderRows(form, restored);
      const part = form.closest("details");
      if (part && (form.id !== "accept" || drafts.isChanged(form, "term"))) part.open = true;
    }
    noteWording();
    return isRestored;
  }

  async function renderRows(form, pairs) {
    const body = new FormData(form);
    for (const [name] of pairs) body.delete(name);
    for (const [name, value] of [...pairs, ["act", "draft"]]) body.append(name, value);
    try {
      const answer = await post(form.action, new URLSearchParams(body).toString());
      const text = await answer.text();
      if (answer.ok && !isSignIn(answer)) show(text, answer.url, "rows");
    } catch {
      say("No connection: reload the page to see what you had written.", true);
    }
  }

  // Says beside the verdicts that the wording was changed, also if the part in which it was changed is closed.
  function noteWording() {
    const [note, form] = [find("[data-changed]"), find("#accept")];
    if (note && form) note.hidden = !drafts.isChanged(form, "term");
  }

  function discardWording() {
    const form = find("#accept");
    form.reset();
    drafts.save(form, user());
    noteWording();
    close();
  }

  function keysAreOn() {
    return localStorage.getItem(KEYS) !== "off";
  }

  function open(name) {
    for (const other of ["reject", "edit"]) {
      const part = find(`#${other}`);
      if (part) part.open = other === name;
    }
    const field = find(`#${name} :is(textarea, input[type=checkbox], input[type=text])`);
    if (!field) return;
    field.focus();
    field.closest("details").scrollIntoView({ block: "nearest" });
  }

  function close() {
    for (const part of area().querySelectorAll("details[open]")) part.open = false;
    find("#question")?.focus();
  }

  // ---- sending ------------------------------------------------------------------------------------------------

  async function send(form, button) {
    if (busy) return;
    busy = true;
    area().dataset.sending = "";
    const time = form.elements.namedItem("seconds");
    if (time) time.value = (seconds() / 1000).toFixed(1);
    // A button with a name changes the form, which comes back with what was written.
    const changes = Boolean(button?.name);
    const label = "label" in form.dataset && !changes;
    const data = new FormData(form);
    if (changes) data.append(button.name, button.value);
    const requests = [{ url: form.action, body: new URLSearchParams(data).toString(), keys: sentDrafts(form, changes) }];
    const comment = changes ? null : unsentComment(form);
    if (comment) requests.unshift(requestOf(comment));
    if (label) keep({ requests, draft: area().dataset.draft, user: user() });
    try {
      const answer = await sendAll(requests, label || Boolean(comment));
      if (isSignIn(answer)) return void offerSignIn(label || comment || form.dataset.act === "comment");
      const text = await answer.text();
      if (answer.ok || answer.status === 400) {
        if (changes) drafts.forget([drafts.keyOf(form, user())]);
        if (answer.ok) drafts.forget(requests.at(-1).keys);
        if (!show(text, answer.url, changes ? "rows" : form.dataset.act)) throw new Error("This is no page of the area.");
        forget();
      } else {
        throw new Error(`The server answered ${answer.status}.`);
      }
    } catch (trouble) {
      if (!label && trouble instanceof TypeError) {
        say("No connection: nothing was sent. Try again.", true);
      } else {
        // The plain way shows whatever is wrong; the key of a label sees to it that it is stored once.
        submitPlainly(form, button);
      }
    } finally {
      busy = false;
      delete area()?.dataset.sending;
    }
  }

  function submitPlainly(form, button) {
    if (button?.name) {
      const pressed = document.createElement("input");
      Object.assign(pressed, { type: "hidden", name: button.name, value: button.value });
      form.append(pressed);
    }
    HTMLFormElement.prototype.submit.call(form);
  }

  // A comment that was written and not added yet: it is not lost when something else is sent.
  function unsentComment(form) {
    const comment = find("#comment");
    return comment && comment.form !== form && comment.value.trim() ? comment.form : null;
  }

  function requestOf(form) {
    return { url: form.action, body: new URLSearchParams(new FormData(form)).toString(), keys: sentDrafts(form) };
  }

  // Keys of the drafts that a stored form makes obsolete; a verdict also those of reasons that were ticked and not sent.
  function sentDrafts(form, changes = false) {
    if (changes) return [];
    const reject = "label" in form.dataset ? find("#reject-form") : null;
    const accept = form.id === "original" ? find("#accept") : null;
    return [form, reject, accept].filter((sent) => sent?.id).map((sent) => drafts.keyOf(sent, user()));
  }

  // Sends requests one after the other and returns the answer to the last one, or the first that was not taken.
  async function sendAll(requests, isPersistent) {
    let answer = null;
    for (const [index, { url, body, keys }] of requests.entries()) {
      answer = await sendWithToken(url, body, isPersistent);
      if (index === requests.length - 1 || !answer.ok || isSignIn(answer)) break;
      drafts.forget(keys);
    }
    return answer;
  }

  // Sends a request; if its token belongs to an earlier session, sends it again with the one of today's session.
  async function sendWithToken(url, body, isPersistent) {
    const send = isPersistent ? sendUntilAnswered : post;
    const answer = await send(url, body);
    if (answer.status !== 403) return answer;
    const current = await fetch(location.href);
    if (isSignIn(current)) return current;
    const page = new DOMParser().parseFromString(await current.text(), "text/html");
    if (page.querySelector("[data-annotate]")?.dataset.user !== user()) return answer;
    const renewed = new URLSearchParams(body);
    renewed.set("csrf", page.querySelector("meta[name=csrf]").content);
    return send(url, renewed.toString());
  }

  const isSignIn = (answer) => answer.redirected && new URL(answer.url).pathname === `${root}/sign-in`;

  function offerSignIn(isKept) {
    const link = document.createElement("a");
    link.href = `${root}/sign-in?next=${encodeURIComponent(location.pathname.slice(root.length))}`;
    link.textContent = "Sign in";
    const kept = isKept ? "What you said is kept in this browser, and is sent when you have signed in. " : "";
    say(`Your session has ended. ${kept}`, true, link);
  }

  function post(url, body) {
    return fetch(url, {
      method: "POST",
      body,
      headers: { "Content-Type": "application/x-www-form-urlencoded" },
      credentials: "same-origin",
    });
  }

  async function sendUntilAnswered(url, body) {
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await post(url, body);
      } catch {
        say("No connection. What you said is kept, and is sent again.", true);
        await pause(WAITS[Math.min(attempt, WAITS.length - 1)]);
      }
    }
  }

  function pause(wait) {
    return new Promise((resolve) => {
      const timer = setTimeout(done, wait * 1000);
      function done() {
        clearTimeout(timer);
        window.removeEventListener("online", done);
        resolve();
      }
      window.addEventListener("online", done);
    });
  }

  function keep(label) {
    try {
      sessionStorage.setItem(PENDING_LABEL, JSON.stringify(label));
    } catch {
      // Without storage a label lives as long as its page.
    }
  }

  function forget() {
    sessionStorage.removeItem(PENDING_LABEL);
  }

  // Sends a label again, with the same key, that was not acknowledged when the page was left or the session ended.
  async function sendPendingLabel() {
    const pendingLabel = JSON.parse(sessionStorage.getItem(PENDING_LABEL) || "null");
    if (!pendingLabel || !area() || pendingLabel.user !== area().dataset.user) return;
    busy = true;
    try {
      const answer = await sendAll(pendingLabel.requests, true);
      if (isSignIn(answer)) return void offerSignIn(true);
      const text = await answer.text();
      forget();
      if (answer.ok) drafts.forget(pendingLabel.requests.at(-1).keys);
      if (answer.ok && area().dataset.draft !== pendingLabel.draft) say("A label that had been kept was sent.");
      else if (answer.ok || answer.status === 400) show(text, answer.url);
      else say("A label that had been kept was not taken: the question is settled or in other hands.", true);
    } finally {
      busy = false;
    }
  }

  // Replaces the page by the page in an answer; returns false if that page is not an annotation page.
  function show(text, url, act) {
    const page = new DOMParser().parseFromString(text, "text/html");
    const main = page.querySelector("main");
    if (!main?.querySelector("[data-annotate]")) return false;
    document.title = page.title;
    const draft = area().dataset.draft;
    const token = page.querySelector("meta[name=csrf]");
    if (token) document.querySelector("meta[name=csrf]").content = token.content;
    document.querySelector("main").replaceWith(document.importNode(main, true));
    const path = new URL(url).pathname;
    if (path !== here) history.pushState(null, "", path);
    here = path;
    const before = area().dataset.draft === draft ? seconds() : 0;
    const isRestored = begin();
    spent = before;
    const rows = act === "rows" && find("form[data-keep][data-label]");
    if (rows) {
      rows.dataset.unsent = "";
      drafts.save(rows, user());
    }
    const error = find("[data-error]");
    const field = find("[autofocus]");
    if (field && !error) {
      field.focus();
      field.closest("fieldset").scrollIntoView({ block: "nearest" });
      return true;
    }
    const comments = act === "comment" && !error && find("#discussion");
    if (comments) comments.scrollIntoView();
    else window.scrollTo(0, 0);
    (error || comments || find("#question"))?.focus({ preventScroll: true });
    const restored = isRestored ? " What you had not sent is back." : "";
    say(error ? error.textContent : area().dataset.announcement + restored, Boolean(error));
    return true;
  }

  // ---- keys ---------------------------------------------------------------------------------------------------

  function pressed(event) {
    if (!area() || event.altKey || event.isComposing || event.defaultPrevented) return;
    if (find("#keys")?.open) return;
    if (event.ctrlKey || event.metaKey) {
      if (event.key === "Enter" && !event.repeat && !busy) sendWritten(event);
      return;
    }
    if (event.key === "Tab") {
      hop(event);
      return;
    }
    const inField = event.target.matches?.(typing);
    if (event.key === "Escape") {
      if (find("details[open]")) close();
      else if (inField) event.target.blur();
      return;
    }
    if (inField || event.repeat || busy || !keysAreOn()) return;
    if (event.key === "Enter") sendOpen(event);
    else if (event.key === "?") showKeys(event);
    else if (/^[1-9]$/.test(event.key)) toggle(event);
    else press(event);
  }

  function press(event) {
    const control = find(`[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
    if (!control) return;
    event.preventDefault();
    control.click();
  }

  function showKeys(event) {
    const keys = find("#keys");
    if (!keys) return;
    event.preventDefault();
    keys.showModal();
  }

  function toggle(event) {
    const reason = find(`[data-reason="${event.key}"]`);
    if (!reason) return;
    event.preventDefault();
    const part = find("#reject");
    if (!part.open) open("reject");
    reason.checked = !reason.checked;
    reason.focus();
    if (reason.value === "other" && reason.checked) find("#remark").focus();
  }

  function sendWritten(event) {
    const form = event.target.closest?.("form.stack") ?? find("details[open] form");
    if (!form) return;
    event.preventDefault();
    form.requestSubmit();
  }

  function sendOpen(event) {
    const native = event.target.closest?.("button, a, summary");
    const part = find("#reject[open]") ?? find("#edit[open]");
    if (native || !part) return;
    event.preventDefault();
    part.querySelector("form").requestSubmit();
  }

  // The Tab key stops once at a group of radio buttons; here it stops at every suggested word.
  function hop(event) {
    const word = event.target;
    if (!word.matches?.("[data-statement] input")) return;
    const stops = [...word.closest("[data-statement]").querySelectorAll("input")].filter(
      (input) => input === word || "likely" in input.dataset || input.checked,
    );
    const next = stops[stops.indexOf(word) + (event.shiftKey ? -1 : 1)];
    if (!next) return;
    event.preventDefault();
    next.focus();
  }

  document.addEventListener("keydown", pressed);
  document.addEventListener("visibilitychange", watch);
  document.addEventListener("input", (event) => {
    const form = event.target.form;
    if (!area() || !form || !("keep" in form.dataset)) return;
    drafts.save(form, user());
    noteWording();
  });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!area()?.contains(form) || form.method !== "post") return;
    if ("plain" in area().dataset) {
      if (form.id) drafts.leave(form, user());
      const comment = unsentComment(form);
      if (!comment) return;
      event.preventDefault();
      sendAll([requestOf(comment)], true).then((answer) => {
        if (isSignIn(answer)) offerSignIn(true);
        else submitPlainly(form, event.submitter);
      });
      return;
    }
    if (!("label" in form.dataset || "act" in form.dataset)) return;
    event.preventDefault();
    send(form, event.submitter);
  });
  window.addEventListener("popstate", () => {
    // Links within the page end here, too.
    if (location.pathname !== here) location.reload();
  });
  // The message about the last action is announced once, not again when the page is reloaded.
  const isDone = new URLSearchParams(location.search).has("done");
  drafts.arrive(isDone);
  if (isDone) history.replaceState(null, "", location.pathname);
  if (begin()) say("What you had not sent is back.");
  sendPendingLabel();
})();
