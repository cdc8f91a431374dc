// Live updates: the events of this session's jobs, and the state of the converter.

const eventTypes = ["queued", "processing", "reclaimed", "retry", "released", "complete", "failed", "expired", "cancelled", "manual_retry", "redrive", "cancel"];
const pollInterval = 5000;

/** follow listens for events. Each event names a job; the caller reads the job from the API. */
export function follow({ changed, missed, connected }) {
  let delay = 1000;
  const open = () => {
    const source = new EventSource("/api/events");
    source.addEventListener("open", () => {
      delay = 1000;
      connected(true);
      missed();
    });
    source.addEventListener("error", () => {
      connected(false);
      // The browser reconnects by itself unless the answer was not an event stream.
      if (source.readyState !== EventSource.CLOSED) return;
      setTimeout(open, delay);
      delay = Math.min(delay * 2, 30000);
    });
    source.addEventListener("reset", missed);
    const onEvent = (event) => {
      const subject = JSON.parse(event.data).subject;
      if (subject) changed(subject);
    };
    for (const type of eventTypes) source.addEventListener(`job.${type}`, onEvent);
    addEventListener("pagehide", () => source.close(), { once: true });
  };
  open();
}

/** watch reads the state of the converter every few seconds while the page is visible, and whenever the returned function is called. */
export function watch(onState, onUnreachable) {
  let timer;
  let asking = false;
  const ask = async () => {
    clearTimeout(timer);
    if (!asking && !document.hidden) {
      asking = true;
      try {
        const answer = await fetch("/api/gateway");
        if (answer.ok) onState(await answer.json());
      } catch {
        onUnreachable();
      }
      asking = false;
    }
    clearTimeout(timer);
    timer = setTimeout(ask, pollInterval);
  };
  document.addEventListener("visibilitychange", ask);
  ask();
  return ask;
}
