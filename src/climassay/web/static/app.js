// Progress of jobs, for all pages. Pages work without it.
"use strict";

// The path below which a proxy serves the pages; empty at the top of a host.
const root = document.documentElement.dataset.root || "";

// Adds the output that a job has written since the last update. The server renders the page again; elements that have
// not changed stay in the document and keep the focus.
class Growth {
  constructor() {
    this.requested = this.busy = false;
  }

  async want() {
    this.requested = true;
    if (this.busy) return;
    this.busy = true;
    while (this.requested) {
      this.requested = false;
      try {
        const answer = await fetch(location.href);
        if (answer.ok) this.show(new DOMParser().parseFromString(await answer.text(), "text/html"));
      } catch {
        // The next event fetches the page again, and the page is reloaded when the job ends.
      }
    }
    this.busy = false;
  }

  show(page) {
    for (const region of document.querySelectorAll("[data-growing]")) {
      const grown = page.getElementById(region.id);
      if (!grown?.matches("[data-growing]")) return; // The job has ended, and the page has another layout.
      const pieces = [...grown.children];
      pieces.forEach((piece, number) => {
        const current = region.children[number];
        if (!current) region.append(piece);
        else if (!current.isEqualNode(piece)) current.replaceWith(piece);
      });
      while (region.children.length > pieces.length) region.lastElementChild.remove();
      region.closest("[data-part]")?.toggleAttribute("hidden", pieces.length === 0);
    }
  }
}

// On a phone the tabs are one line that can be moved: the current one is in sight.
for (const link of document.querySelectorAll(".tabs [aria-current]")) {
  const line = link.closest(".tabs");
  line.scrollLeft = link.offsetLeft - line.offsetLeft - (line.clientWidth - link.offsetWidth) / 2;
}

// Says on the page that the server cannot be reached, and goes on when it answers again.
function watchConnection(source, box) {
  const notice = document.createElement("p");
  notice.className = "error";
  notice.setAttribute("role", "status");
  box.append(notice);
  const show = (words) => {
    notice.textContent = words;
    notice.hidden = !words;
  };
  show("");
  source.addEventListener("open", () => show(""));
  source.addEventListener("error", () => {
    show("The server cannot be reached. The work goes on there; this page will show it as soon as the server answers.");
    // An interrupted stream opens itself again; one that the server refused needs a new page.
    if (source.readyState === EventSource.CLOSED) reloadWhenReached();
  });
}

async function reloadWhenReached() {
  try {
    if ((await fetch(location.href, { method: "HEAD" })).ok) {
      location.reload();
      return;
    }
  } catch {
    // Not yet.
  }
  setTimeout(reloadWhenReached, 4000);
}

for (const field of document.querySelectorAll("textarea[data-max-length]")) {
  const longest = Number(field.dataset.maxLength);
  const notice = document.createElement("p");
  notice.className = "error";
  notice.id = `${field.id}-length`;
  notice.setAttribute("role", "status");
  field.after(notice);
  field.setAttribute("aria-describedby", `${field.getAttribute("aria-describedby") ?? ""} ${notice.id}`.trim());
  const measure = () => {
    // The server counts characters as Python does: one for each code point.
    const length = [...field.value].length;
    const words = length > longest ? `Too long by ${(length - longest).toLocaleString("en")} of ${longest.toLocaleString("en")} characters: shorten it.` : "";
    field.setCustomValidity(words);
    notice.textContent = words;
    notice.hidden = !words;
  };
  field.addEventListener("input", measure);
  measure();
}

for (const box of document.querySelectorAll("[data-job]")) {
  const source = new EventSource(`${root}/jobs/${encodeURIComponent(box.dataset.job)}/events?after=${box.dataset.last ?? 0}`);
  const meter = box.querySelector("[data-job-meter]");
  const message = box.querySelector("[data-job-message]");
  const state = box.querySelector("[data-job-state]");
  source.addEventListener("progress", (event) => {
    const news = JSON.parse(event.data);
    if (state) state.textContent = news.state;
    if (message) message.textContent = news.total ? `${news.done} of ${news.total} ${news.message}` : news.message;
    if (meter && news.total) {
      meter.max = news.total;
      meter.value = news.done;
    }
  });
  const growth = new Growth();
  source.addEventListener("written", () => growth.want());
  watchConnection(source, box);
  setInterval(() => {
    if (state?.textContent === "queued") growth.want(); // Others before it are done without an event of this job.
  }, 5000);
  source.addEventListener("end", () => {
    source.close();
    location.reload();
  });
}
