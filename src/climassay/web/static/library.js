// The library: progress of uploads, copying of references, confirmation of removals. Pages work without it.
"use strict";

function inMegabytes(bytes) {
  return (bytes / 1048576).toFixed(1);
}

// Sends a form and shows the progress of the upload, then opens the page of the job that adds the files.
function sendWithProgress(form) {
  const box = form.querySelector("[data-upload-progress]");
  const meter = box.querySelector("progress");
  const status = box.querySelector("p");
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
    status.textContent = event.loaded < event.total
      ? `${inMegabytes(event.loaded)} of ${inMegabytes(event.total)} MB sent`
      : "Sent; the files are looked at.";
  });
  request.addEventListener("load", () => {
    let answer = {};
    try {
      answer = JSON.parse(request.responseText);
    } catch {
      // Not an answer of this server, perhaps of a proxy: the status is reported instead.
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
  status.textContent = "Sending.";
  request.send(new FormData(form));
}

for (const form of document.querySelectorAll("form[data-upload]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    sendWithProgress(form);
  });
}

if (navigator.clipboard) {
  const status = document.querySelector("[data-copy-status]");
  for (const button of document.querySelectorAll("button[data-copy]")) {
    const words = button.textContent;
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
        button.textContent = "Copied";
        status.textContent = "Copied.";
      } catch {
        button.textContent = "Could not copy";
      }
      setTimeout(() => { button.textContent = words; }, 2000);
    });
  }
}
