// What all pages share: jobs that tell how far they are. Pages work without it.
"use strict";

// The path below which a proxy serves the pages; empty at the top of a host.
const root = document.documentElement.dataset.root || "";

for (const box of document.querySelectorAll("[data-job]")) {
  const source = new EventSource(`${root}/jobs/${encodeURIComponent(box.dataset.job)}/events`);
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
  source.addEventListener("end", () => {
    source.close();
    location.reload();
  });
}
