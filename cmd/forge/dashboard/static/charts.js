// Draws the charts of the insights from the tables that stand under them. Colours
// come from the style sheet; all charts share a cursor, which the arrow keys move.
"use strict";

(() => {
  const seconds = 86400; // of a day
  const dashes = [[], [7, 4], [2, 3]]; // so that colour is not all that tells lines apart
  const dayName = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
  const day = (s) => dayName.format(new Date(s * 1000));
  // How many digits a step on an axis needs behind the point: 0.25 needs two.
  const digits = (step) => {
    let n = 0;
    while (n < 6 && Math.abs(step * 10 ** n - Math.round(step * 10 ** n)) > 1e-6) n++;
    return n;
  };
  const colour = (el, of) => getComputedStyle(el)[of];

  // A chart's days, values (null where nothing was observed) and their texts.
  const read = (figure) => {
    const rows = [...figure.querySelectorAll("tbody tr")];
    const days = rows.map((r) => Date.parse(r.cells[0].textContent + "T00:00:00Z") / 1000);
    const columns = [...rows[0].cells].slice(1).map((_, i) => rows.map((r) => r.cells[i + 1]));
    return {
      data: [days, ...columns.map((c) => c.map((cell) => {
        const value = cell.querySelector("data");
        return value ? Number(value.value) : null;
      }))],
      texts: columns.map((c) => c.map((cell) => cell.textContent)),
    };
  };

  class Chart {
    constructor(figure) {
      this.figure = figure;
      this.plot = figure.querySelector(".plot");
      this.legend = figure.querySelector(".legend");
      Object.assign(this, read(figure));
      this.plot.hidden = this.legend.hidden = false;
      this.plot.tabIndex = 0;
      this.plot.setAttribute("role", "img");
      this.plot.setAttribute("aria-label", figure.querySelector("h3").textContent + ", by day. The arrow keys move along the days; the numbers stand in the table below.");
      this.plot.addEventListener("keydown", (e) => this.key(e));
      this.plot.addEventListener("blur", () => this.show(null));
      this.draw();
      this.show(null);
      new ResizeObserver(() => this.u.setSize(this.size())).observe(this.plot);
    }

    size() { return { width: Math.max(200, this.plot.clientWidth), height: 200 }; }

    draw() {
      if (this.u) this.u.destroy();
      const { form, before, after } = this.figure.dataset;
      const full = "full" in this.figure.dataset, band = "band" in this.figure.dataset;
      const keys = [...this.legend.querySelectorAll(".key")];
      const text = colour(this.legend, "color"), line = colour(this.figure, "borderTopColor");
      const ground = colour(this.figure, "backgroundColor");
      const most = Math.max(0, ...this.data.slice(1).flat().filter((v) => v !== null));
      const axis = { stroke: text, font: "12px system-ui, sans-serif", grid: { stroke: line, width: 1 }, ticks: { show: false } };
      const series = keys.map((key, i) => {
        const stroke = colour(key, "color");
        if (form === "bars") {
          return { stroke, fill: stroke, width: 0, paths: uPlot.paths.bars({ size: [0.7, 36] }), points: { show: false } };
        }
        if (band && (i === 1 || i === 2)) return { width: 0, points: { show: false } };
        return { stroke, width: 2, dash: dashes[i], points: { show: true, size: this.data[0].length > 31 ? 3 : 5, width: 1.5, stroke, fill: ground } };
      });
      this.u = new uPlot({
        ...this.size(),
        tzDate: (s) => uPlot.tzDate(new Date(s * 1000), "Etc/UTC"),
        padding: [10, 10, 0, 0],
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false }, sync: { key: "insights" }, points: { size: 8 } },
        scales: {
          x: { range: (u, from, to) => [from - seconds / 2, to + seconds / 2] },
          y: { range: full ? [-3, 103] : [0, most > 0 ? most * 1.12 : 1] },
        },
        axes: [
          { ...axis, size: 26, grid: { show: false }, incrs: [1, 2, 7, 14, 28].map((n) => n * seconds), space: 56, values: (u, at) => at.map(day) },
          { ...axis, size: 62, space: 32, incrs: full ? [25, 50] : form === "bars" ? [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 10000] : undefined,
            values: (u, at, axis, space, step) => at.map((v) => before + v.toFixed(Math.max(digits(step), before === "$" ? 2 : 0)) + after) },
        ],
        series: [{}, ...series],
        bands: band ? [{ series: [3, 2], fill: `color-mix(in srgb, ${series[0].stroke} 18%, transparent)` }] : [],
        hooks: { setCursor: [(u) => this.show(u.cursor.idx)] },
      }, this.data, this.plot);
    }

    // show writes the values of a day, by its place; null for the last one that has any.
    show(at) {
      if (at === null || at === undefined) {
        at = this.data[0].length - 1;
        while (at > 0 && this.data.slice(1).every((s) => s[at] === null)) at--;
      }
      this.at = at;
      this.legend.querySelector(".day").textContent = day(this.data[0][at]);
      this.legend.querySelectorAll("b").forEach((b, i) => { b.textContent = this.texts[i][at]; });
    }

    key(e) {
      const last = this.data[0].length - 1;
      const to = { ArrowLeft: this.at - 1, ArrowRight: this.at + 1, Home: 0, End: last, PageUp: this.at - 7, PageDown: this.at + 7 }[e.key];
      if (to === undefined) return;
      e.preventDefault();
      this.legend.setAttribute("aria-live", "polite");
      const at = Math.min(last, Math.max(0, to));
      for (const c of charts) c.u.setCursor({ left: c.u.valToPos(c.data[0][at], "x"), top: 20 });
    }
  }

  const charts = [...document.querySelectorAll("figure.chart")].filter((f) => f.querySelector(".plot")).map((f) => new Chart(f));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach((c) => c.draw()));
})();
