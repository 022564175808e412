// Live debates, and passages shown beside the text that cites them. Pages work without it.
"use strict";

const KINDS = ["subclaims", "passages", "activity", "opinion", "question", "decision", "verdict"];

// Formats a duration like the server does.
function duration(seconds) {
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${seconds % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

// Fetches the events since the last one shown. The server renders them with the templates of the whole page and escapes
// every text that people, models or documents wrote.
class Debate {
  constructor(box) {
    this.box = box;
    this.lastShown = Number(box.dataset.last);
    this.lastEvent = this.lastShown;
    this.busy = false;
  }

  follow() {
    this.tick();
    setInterval(() => this.showTime(), 1000);
    const source = new EventSource(`${document.documentElement.dataset.root}/jobs/${encodeURIComponent(this.box.dataset.jobEvents)}/events?after=${this.lastShown}`);
    for (const kind of KINDS) {
      source.addEventListener(kind, (event) => this.want(Number(event.lastEventId)));
    }
    source.addEventListener("begin", (event) => {
      // The job was interrupted and starts again: the page shows the events of the previous attempt.
      if (document.querySelector("[data-into] > *")) location.reload();
      else this.want(Number(event.lastEventId));
    });
    source.addEventListener("progress", (event) => {
      const news = JSON.parse(event.data);
      this.queued = news.state === "queued";
      this.box.querySelector("[data-state]").textContent = this.queued ? "waiting for its turn" : "debating";
      this.box.querySelector("[data-message]").textContent = news.message;
    });
    source.addEventListener("end", () => {
      source.close();
      location.reload();
    });
    watchConnection(source, this.box);
    setInterval(() => {
      if (this.queued) this.refresh();
    }, 5000);
  }

  // Shows the progress again: others before this check are done without an event of its own.
  async refresh() {
    if (this.busy) return;
    this.busy = true;
    try {
      this.lastShown = Math.max(await this.fetchNews(), this.lastShown);
    } catch {
      // The next time fetches again.
    } finally {
      this.busy = false;
    }
    this.want(this.lastEvent);
  }

  async want(number) {
    this.lastEvent = Math.max(this.lastEvent, number);
    if (this.busy) return;
    this.busy = true;
    try {
      while (this.lastShown < this.lastEvent) this.lastShown = Math.max(await this.fetchNews(), this.lastShown + 1);
    } catch {
      this.lastEvent = this.lastShown; // the next event fetches again
    } finally {
      this.busy = false;
    }
  }

  async fetchNews() {
    const answer = await fetch(`${document.documentElement.dataset.root}/checks/${encodeURIComponent(this.box.dataset.live)}/debate?after=${this.lastShown}`);
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const holder = document.createElement("template");
    holder.innerHTML = await answer.text();
    const news = holder.content.querySelector("[data-last]");
    this.box.querySelector("[data-progress]").replaceWith(news.querySelector("[data-progress]"));
    this.tick();
    for (const piece of [...news.children]) this.show(piece);
    return Number(news.dataset.last);
  }

  // Restarts the clock, which runs on between two events.
  tick() {
    const progress = this.box.querySelector("[data-progress]");
    this.started = progress.dataset.elapsed === undefined ? null : Date.now() - 1000 * Number(progress.dataset.elapsed);
  }

  showTime() {
    const clock = this.box.querySelector("[data-clock]");
    if (clock && this.started !== null) clock.textContent = duration(Math.max(0, Math.floor((Date.now() - this.started) / 1000)));
  }

  show(piece) {
    const region = document.querySelector(`[data-into="${piece.dataset.region}"]`);
    for (const part of [...piece.children]) {
      const existing = part.id ? document.getElementById(part.id) : null;
      if (existing) existing.replaceWith(part);
      else region.append(part);
    }
    if (region.children.length) region.closest("[data-part]").hidden = false;
    this.box.querySelector("[data-announcement]").textContent = piece.dataset.announcement;
  }
}

const live = document.querySelector("[data-live]");
if (live) new Debate(live).follow();

const dialog = document.querySelector("[data-passage-dialog]");
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-passage]");
  if (!link || !dialog || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const passage = document.getElementById(`passage-${link.dataset.passage}`);
  if (!passage) return;
  event.preventDefault();
  const copy = passage.cloneNode(true);
  copy.removeAttribute("id");
  dialog.querySelector("[data-passage-place]").replaceChildren(copy);
  if (!dialog.open) dialog.showModal();
});
if (dialog) {
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
}
