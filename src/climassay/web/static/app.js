// What all pages share: jobs that tell how far they are. Pages work without it.
"use strict";

// The path below which a proxy serves the pages; empty at the top of a host.
const root = document.documentElement.dataset.root || "";

// Brings in what a job has written since: the server makes the page anew, and what has not changed stays where it is,
// with the focus in it.
class Growth {
  constructor() {
    this.wanted = this.busy = false;
  }

  async want() {
    this.wanted = true;
    if (this.busy) return;
    this.busy = true;
    while (this.wanted) {
      this.wanted = false;
      try {
        const answer = await fetch(location.href);
        if (answer.ok) this.show(new DOMParser().parseFromString(await answer.text(), "text/html"));
      } catch {
        // The next news asks again, and the end shows the whole page.
      }
    }
    this.busy = false;
  }

  show(page) {
    for (const place of document.querySelectorAll("[data-growing]")) {
      const grown = page.getElementById(place.id);
      if (!grown?.matches("[data-growing]")) return; // The job has ended meanwhile, and the page is another.
      const pieces = [...grown.children];
      pieces.forEach((piece, number) => {
        const known = place.children[number];
        if (!known) place.append(piece);
        else if (!known.isEqualNode(piece)) known.replaceWith(piece);
      });
      while (place.children.length > pieces.length) place.lastElementChild.remove();
      place.closest("[data-part]")?.toggleAttribute("hidden", pieces.length === 0);
    }
  }
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
  source.addEventListener("end", () => {
    source.close();
    location.reload();
  });
}
