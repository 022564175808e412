// The library: how far an upload is, copying a reference, asking before something is removed. Pages work without it.
"use strict";

function inMegabytes(bytes) {
  return (bytes / 1048576).toFixed(1);
}

// Sends a form with the upload's own progress, then shows the page that tells how far the adding is.
function sendWithProgress(form) {
  const box = form.querySelector("[data-upload-progress]");
  const meter = box.querySelector("progress");
  const said = box.querySelector("p");
  const error = form.querySelector("[data-upload-error]");
  const button = form.querySelector("button.primary");

  function fail(sentence) {
    box.hidden = true;
    button.disabled = false;
    error.textContent = sentence;
    error.hidden = false;
    error.scrollIntoView({ block: "nearest" });
  }

  const request = new XMLHttpRequest();
  request.open("POST", form.action);
  request.setRequestHeader("Accept", "application/json");
  request.setRequestHeader("X-CSRF-Token", document.querySelector("meta[name=csrf]").content);
  request.upload.addEventListener("progress", (event) => {
    if (!event.lengthComputable) return;
    meter.max = event.total;
    meter.value = event.loaded;
    said.textContent = event.loaded < event.total
      ? `${inMegabytes(event.loaded)} of ${inMegabytes(event.total)} MB sent`
      : "Sent; the files are looked at.";
  });
  request.addEventListener("load", () => {
    let answer = {};
    try {
      answer = JSON.parse(request.responseText);
    } catch {
      // Another answer than ours, as from a proxy: its status says enough.
    }
    if (request.status === 200 && typeof answer.page === "string" && answer.page.startsWith("/library/")) {
      location.assign(document.documentElement.dataset.root + answer.page);
    } else if (request.status === 413) {
      fail("These files are larger than this server accepts at once.");
    } else {
      fail(answer.error || `The server refused the files (${request.status}).`);
    }
  });
  request.addEventListener("error", () => fail("The connection was lost: nothing was added. Try again."));
  request.addEventListener("abort", () => fail("Stopped: nothing was added."));

  error.hidden = true;
  box.hidden = false;
  button.disabled = true;
  meter.removeAttribute("value");
  said.textContent = "Sending.";
  request.send(new FormData(form));
}

for (const form of document.querySelectorAll("form[data-upload]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    sendWithProgress(form);
  });
}

for (const form of document.querySelectorAll("form[data-confirm]")) {
  form.addEventListener("submit", (event) => {
    if (!window.confirm(form.dataset.confirm)) event.preventDefault();
  });
}

if (navigator.clipboard) {
  const said = document.querySelector("[data-copy-said]");
  for (const button of document.querySelectorAll("button[data-copy]")) {
    const words = button.textContent;
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
        button.textContent = "Copied";
        said.textContent = "Copied.";
      } catch {
        button.textContent = "Could not copy";
      }
      setTimeout(() => { button.textContent = words; }, 2000);
    });
  }
}
