// Replaces the changing part of a page when the server says that something has happened, and shows the progress of uploads.
const live = document.getElementById("live");
if (live?.dataset.events) {
  const events = new EventSource(live.dataset.events);
  let again = 0;
  const refresh = async () => {
    clearTimeout(again);
    again = 0;
    try {
      const answer = await fetch(location.pathname, { headers: { Accept: "text/html" } });
      if (!answer.ok) return;
      const next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
      const open = [...live.querySelectorAll("details[open]")].map((d) => d.closest("[data-token-id]")?.dataset.tokenId);
      if (next && !live.contains(document.activeElement)) {
        live.replaceChildren(...next.childNodes);
        for (const id of open) live.querySelector(`[data-token-id="${CSS.escape(id)}"] details`)?.setAttribute("open", "");
      } else if (next) {
        again = setTimeout(refresh, 3000); // a person uses a control of this part
      }
    } catch {
      again = setTimeout(refresh, 3000);
    }
  };
  events.addEventListener("token_failed", (e) => {
    const data = JSON.parse(e.data);
    const badge = live.querySelector(`[data-token-id="${CSS.escape(data.token_id)}"] .status-badge`);
    if (badge) {
      badge.textContent = "FAILED";
      badge.dataset.state = "failed";
    }
    refresh();
  });
  events.addEventListener("progress", refresh);
}

for (const form of document.querySelectorAll("form[data-progress]")) {
  form.addEventListener("submit", (e) => {
    const bar = form.querySelector("progress");
    e.preventDefault();
    bar.hidden = false;
    form.querySelector("button").disabled = true;
    const request = new XMLHttpRequest();
    request.open("POST", form.action);
    request.upload.addEventListener("progress", (p) => { bar.value = p.lengthComputable ? (100 * p.loaded) / p.total : 0; });
    request.addEventListener("load", () => {
      if (request.status < 400) {
        location.assign(request.responseURL);
        return;
      }
      document.documentElement.replaceChildren(...new DOMParser().parseFromString(request.responseText, "text/html").documentElement.childNodes);
    });
    request.addEventListener("error", () => { bar.hidden = true; form.querySelector("button").disabled = false; });
    request.send(new FormData(form));
  });
}
