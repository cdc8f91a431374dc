// What the server tells by itself: the events of this owner's jobs, and how the converter is.

const told = ["queued", "processing", "reclaimed", "retry", "returned", "complete", "failed", "expired", "cancelled", "manual_retry", "redrive", "cancel"];
const patience = 5000;

/** follow listens for events. Each names a job; what became of it is asked of the API. */
export function follow({ changed, missed, connected }) {
  let rest = 1000;
  const open = () => {
    const source = new EventSource("/api/events");
    source.addEventListener("open", () => {
      rest = 1000;
      connected(true);
      missed();
    });
    source.addEventListener("error", () => {
      connected(false);
      // The browser comes back by itself unless it was answered with something that is no feed.
      if (source.readyState !== EventSource.CLOSED) return;
      setTimeout(open, rest);
      rest = Math.min(rest * 2, 30000);
    });
    source.addEventListener("reset", missed);
    const hear = (event) => {
      const subject = JSON.parse(event.data).subject;
      if (subject) changed(subject);
    };
    for (const type of told) source.addEventListener(`job.${type}`, hear);
    addEventListener("pagehide", () => source.close(), { once: true });
  };
  open();
}

/** watch asks how the converter is, every few seconds while somebody looks, and when told to. */
export function watch(heard, lost) {
  let timer;
  let asking = false;
  const ask = async () => {
    clearTimeout(timer);
    if (!asking && !document.hidden) {
      asking = true;
      try {
        const answer = await fetch("/api/gateway");
        if (answer.ok) heard(await answer.json());
      } catch {
        lost();
      }
      asking = false;
    }
    clearTimeout(timer);
    timer = setTimeout(ask, patience);
  };
  document.addEventListener("visibilitychange", ask);
  ask();
  return ask;
}
