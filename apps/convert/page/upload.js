// Uploads: files that are dropped on the page or chosen are sent three at a time, each with its own progress bar.
import { bytes } from "./format.js";

const maxRunning = 3;
const waiting = [];
let running = 0;
let host;

/** begin sets up the form and the drop zone. The callbacks receive the results of uploads. */
export function begin(callbacks) {
  host = callbacks;
  const form = document.getElementById("upload");
  const picker = form.elements.file;
  picker.multiple = true;
  picker.required = false; // the button opens it
  picker.addEventListener("change", () => {
    enqueue([...picker.files]);
    picker.value = "";
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    picker.click();
  });
  let depth = 0;
  const over = (event) => event.dataTransfer && [...event.dataTransfer.types].includes("Files");
  const leave = () => {
    depth = 0;
    delete document.documentElement.dataset.dropping;
  };
  document.addEventListener("dragenter", (event) => {
    if (!over(event)) return;
    event.preventDefault();
    depth++;
    document.documentElement.dataset.dropping = "";
  });
  document.addEventListener("dragover", (event) => over(event) && event.preventDefault());
  document.addEventListener("dragleave", (event) => over(event) && --depth <= 0 && leave());
  document.addEventListener("drop", (event) => {
    if (!over(event)) return;
    event.preventDefault();
    leave();
    enqueue([...event.dataTransfer.files]);
  });
  addEventListener("beforeunload", (event) => running + waiting.length > 0 && event.preventDefault());
}

/** enqueue adds files to the uploads. */
function enqueue(chosen) {
  const mapping = document.getElementById("mapping").value;
  for (const file of chosen) {
    const row = document.getElementById("upload-row").content.firstElementChild.cloneNode(true);
    const upload = { file, mapping, row, request: null };
    row.querySelector('[data-part="name"]').textContent = file.name;
    row.querySelector('[data-part="mapping"]').textContent = mapping;
    row.querySelector('[data-part="size"]').textContent = bytes(file.size);
    for (const of of row.querySelectorAll('[data-part="of"]')) of.textContent = file.name;
    row.querySelector("progress").setAttribute("aria-label", `Upload of ${file.name}`);
    row.querySelector('[data-part="stop"]').addEventListener("click", () => stop(upload));
    row.querySelector('[data-part="again"]').addEventListener("click", () => again(upload));
    document.getElementById("uploads").append(row);
    waiting.push(upload);
  }
  host.changed();
  next();
}

function next() {
  while (running < maxRunning && waiting.length > 0) send(waiting.shift());
}

function send(upload) {
  running++;
  const request = (upload.request = new XMLHttpRequest());
  const body = new FormData();
  body.append("mapping", upload.mapping);
  body.append("file", upload.file);
  request.upload.addEventListener("progress", (event) => event.lengthComputable && progress(upload, event.loaded / event.total));
  request.addEventListener("load", () => answered(upload));
  request.addEventListener("error", () => refused(upload, "The upload was interrupted. Check your connection and try again.", true));
  request.addEventListener("loadend", () => {
    running--;
    next();
  });
  request.open("POST", "/api/upload");
  request.responseType = "json";
  progress(upload, 0);
  request.send(body);
}

function progress(upload, share) {
  const bar = upload.row.querySelector("progress");
  bar.value = share;
  const percent = Math.floor(share * 100);
  upload.row.querySelector('[data-part="word"]').textContent = share < 1 ? `${percent} %` : "Checking";
}

/** answered passes an accepted file to the list of jobs, or shows why it was refused. */
function answered(upload) {
  const { status, response } = upload.request;
  if ((status === 200 || status === 201) && response?.id) {
    remove(upload);
    host.accepted(response, status === 200);
    return;
  }
  const message = response?.error_message || "The server could not accept this file. Please try again in a moment.";
  if (response?.id) {
    // The refused file has its own row in the list of jobs.
    remove(upload);
    host.refused(response.id);
    return;
  }
  refused(upload, message, status >= 500 || status === 429 || status === 0);
}

function refused(upload, message, canRetry) {
  upload.row.dataset.state = "failed";
  upload.row.querySelector("use").setAttribute("href", "#shape-failed");
  upload.row.querySelector("progress").hidden = true;
  upload.row.querySelector('[data-part="word"]').textContent = "Not uploaded";
  upload.row.querySelector('[data-part="line"]').textContent = message;
  upload.row.querySelector('[data-part="line"]').hidden = false;
  upload.row.querySelector('[data-part="again"]').hidden = !canRetry;
  upload.row.querySelector('[data-part="stop-word"]').textContent = "Dismiss";
  host.say(`${upload.file.name} was not uploaded. ${message}`);
}

function again(upload) {
  remove(upload);
  enqueue([upload.file]);
}

function stop(upload) {
  const at = waiting.indexOf(upload);
  if (at >= 0) waiting.splice(at, 1);
  upload.request?.abort();
  remove(upload);
  document.getElementById("queue-title").focus();
}

function remove(upload) {
  upload.row.remove();
  host.changed();
}
