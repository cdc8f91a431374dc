// Replaces the changing part of a page when the server says that something has happened, and uploads files in parts.
const live = document.getElementById("live");
if (live?.dataset.events) {
  const events = new EventSource(live.dataset.events);
  let planned = 0;
  const plan = (wait) => {
    clearTimeout(planned);
    planned = setTimeout(refresh, wait);
  };
  const refresh = async () => {
    try {
      const answer = await fetch(location.pathname, { headers: { Accept: "text/html" } });
      if (!answer.ok) return;
      const next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
      if (!next) return;
      if (live.contains(document.activeElement) && document.activeElement.matches("input, textarea, select, button, summary")) {
        plan(3000); // a person uses a control of this part
        return;
      }
      const open = [...live.querySelectorAll("details[open]")].map((d) => d.closest("[data-token-id]")?.dataset.tokenId);
      live.replaceChildren(...next.childNodes);
      for (const id of open) live.querySelector(`[data-token-id="${CSS.escape(id)}"] details`)?.setAttribute("open", "");
    } catch {
      plan(3000);
    }
  };
  const badgeOf = (id) => live.querySelector(`[data-token-id="${CSS.escape(id)}"] .status-badge`);
  const show = (badge, text, state) => {
    if (!badge) return;
    badge.textContent = text;
    badge.dataset.state = state;
  };
  events.addEventListener("open", () => plan(0)); // something may have happened before
  events.addEventListener("token_failed", (e) => {
    show(badgeOf(JSON.parse(e.data).token_id), "FAILED", "failed");
    plan(100);
  });
  events.addEventListener("progress", (e) => {
    const data = JSON.parse(e.data);
    const badge = badgeOf(data.token_id);
    if (data.status === "PROCESSING" && badge?.dataset.state === "processing") show(badge, `PROCESSING (${data.percent} %)`, "processing");
    else plan(100);
  });
  events.addEventListener("campaign", () => plan(100));
}

const partSize = 8 << 20;
const waits = [1, 2, 5, 10, 20, 30]; // seconds before the upload is continued

// An Upload sends a file in parts to the server. What has arrived is not sent again, also after the page was closed: the file is recognised when it is chosen again.
class Upload {
  constructor(file, token, moved) {
    Object.assign(this, { file, token, moved, key: `upload ${file.name} ${file.size} ${file.lastModified}` });
  }

  // run returns the id of the upload when all of the file has arrived.
  async run() {
    for (let tries = 0; ; tries++) {
      try {
        let offset = await this.find();
        while (offset < this.file.size) {
          offset = await this.send(offset);
          tries = 0;
        }
        localStorage.removeItem(this.key);
        return this.at.split("/").pop();
      } catch (e) {
        if (e.final || tries >= 20) throw e;
        this.moved(-1);
        await new Promise((done) => setTimeout(done, 1000 * waits[Math.min(tries, waits.length - 1)]));
      }
    }
  }

  // find returns how much has arrived, and begins the upload if nothing is known of it.
  async find() {
    this.at = localStorage.getItem(this.key);
    if (this.at) {
      const answer = await fetch(this.at, { method: "HEAD" });
      if (answer.ok) return Number(answer.headers.get("Upload-Offset"));
      if (answer.status !== 404) throw new Error("The server does not answer.");
    }
    const name = btoa(String.fromCodePoint(...new TextEncoder().encode(this.file.name)));
    const answer = await fetch("/uploads", { method: "POST", headers: { "Upload-Length": this.file.size, "Upload-Metadata": `filename ${name}`, "X-Form-Token": this.token } });
    if (!answer.ok) throw Object.assign(new Error((await answer.text()).trim()), { final: answer.status < 500 });
    this.at = answer.headers.get("Location");
    localStorage.setItem(this.key, this.at);
    return 0;
  }

  // send sends the part that begins at an offset, and returns where the next one begins.
  send(offset) {
    return new Promise((done, failed) => {
      const request = new XMLHttpRequest();
      request.open("PATCH", this.at);
      request.setRequestHeader("Content-Type", "application/offset+octet-stream");
      request.setRequestHeader("Upload-Offset", offset);
      request.setRequestHeader("X-Form-Token", this.token);
      request.upload.addEventListener("progress", (p) => this.moved((100 * (offset + p.loaded)) / this.file.size));
      request.addEventListener("load", () => {
        if (request.status === 204) done(Number(request.getResponseHeader("Upload-Offset")));
        else failed(Object.assign(new Error(request.responseText.trim()), { final: [401, 403, 413, 422].includes(request.status) }));
      });
      request.addEventListener("error", () => failed(new Error("The connection was interrupted.")));
      request.send(this.file.slice(offset, offset + partSize));
    });
  }
}

for (const form of document.querySelectorAll("form[data-progress]")) {
  form.addEventListener("submit", async (e) => {
    const [bar, status, button, picker] = ["progress", "[role=status]", "button", "[type=file]"].map((s) => form.querySelector(s));
    const file = picker.files[0];
    if (!file || form.dataset.sent) return;
    e.preventDefault();
    bar.hidden = status.hidden = false;
    button.disabled = true;
    const moved = (percent) => {
      if (percent >= 0) bar.value = percent;
      status.textContent = percent < 0 ? "The connection was interrupted. The upload continues by itself." : percent < 100 ? `${Math.floor(percent)} %` : "The server examines the file.";
    };
    try {
      const id = await new Upload(file, form.elements.token.value, moved).run();
      const field = Object.assign(document.createElement("input"), { type: "hidden", name: "upload", value: id });
      form.append(field);
      picker.disabled = true;
      form.dataset.sent = "yes";
      form.enctype = "application/x-www-form-urlencoded";
      form.submit();
    } catch (problem) {
      status.textContent = problem.message || "The upload did not succeed.";
      bar.hidden = true;
      button.disabled = false;
    }
  });
}
