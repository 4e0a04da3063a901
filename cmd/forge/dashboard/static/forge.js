// What the pages do by themselves: stay up to date, and draw charts. Without
// this they stay as they are until they are loaded again, and show tables.
"use strict";

// Live updates: the server says what has changed; a page that shows it reads itself
// again and takes over the differences, so that focus, scroll and opened parts stay.
(() => {
  const main = () => document.getElementById("main");
  const badge = document.getElementById("live");
  if (!window.EventSource || !main() || !main().dataset.live) return;
  let source = null, timer = 0;
  const refresh = () => {
    timer = 0;
    if (document.hidden || main().querySelector("form.dirty")) return;
    window.htmx.ajax("GET", location.pathname + location.search, { target: "#main", select: "#main", swap: "outerMorph" })
      .then(() => document.dispatchEvent(new Event("forge:fresh")));
  };
  const later = () => { timer = timer || setTimeout(refresh, 400); };
  const listen = () => {
    source = new EventSource("/live");
    let lost = false;
    source.addEventListener("changed", (e) => {
      const shown = main().dataset.live.split(" ");
      // "run" stands for every run, "run/7" for one.
      if (shown.includes(e.data) || shown.includes(e.data.split("/")[0])) later();
    });
    source.addEventListener("open", () => {
      badge.hidden = false;
      if (lost) later(); // something may have been missed
      lost = false;
    });
    source.addEventListener("error", () => { badge.hidden = true; lost = true; });
  };
  listen();
  // A hidden page does not listen: a browser has few connections for a server.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      source.close();
      badge.hidden = true;
    } else {
      listen();
      later();
    }
  });
})();

// Times are UTC; pointed at, they say what that is where one is.
(() => {
  const zone = document.getElementById("zone");
  if (zone) zone.textContent = "Times are UTC. Point at one for yours.";
  document.addEventListener("mouseover", (e) => {
    const time = e.target.closest && e.target.closest("time[datetime]");
    const at = time && new Date(time.dateTime);
    if (at && !isNaN(at)) time.title = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" });
  });
})();

// A form that somebody writes in is not replaced under their hands.
document.addEventListener("input", (e) => {
  const form = e.target.closest("form");
  if (form && !form.classList.contains("filter")) form.classList.add("dirty");
});

// A filter shows its result at once.
document.addEventListener("change", (e) => {
  const form = e.target.closest("form.filter");
  if (form) form.requestSubmit();
});
