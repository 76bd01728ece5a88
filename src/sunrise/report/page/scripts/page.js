// The page: what it is made of, its two themes, printing, and what comes while runs go on.

/** A run with its evaluations unpacked; what its ensemble logged stays packed until it is looked at. */
function received(run) {
  return { ...run, eval: unpackedAll(run.eval) };
}

class Page {
  constructor(content) {
    this.report = { ...content, runs: Object.fromEntries(content.runs.map((run) => [run.id, received(run)])) };
    this.main = document.querySelector("main");
    this.curves = new Curves(this.report);
    this.ensemble = new EnsembleView(this.report);
    this.parts = { head: make("header", { class: "head" }), live: make("div"), scores: make("div"), rest: make("div") };
    this.main.replaceChildren(
      this.parts.head,
      this.parts.live,
      this.curves.section,
      this.parts.scores,
      this.ensemble.section,
      this.parts.rest,
    );
    this.draw();
  }

  /** Put the report on the page; of one that was there before, only what is not as it was. */
  draw(changed = null) {
    const { report, parts } = this;
    const isNew = (...names) => changed === null || names.some((name) => name in changed);
    if (isNew("title", "sentence", "about", "warnings")) {
      document.title = report.title;
      const about = report.about ? [make("p", { class: "lead" }, report.about)] : [];
      parts.head.replaceChildren(
        make("p", { class: "brand" }, "SUNRISE report"),
        make("h1", {}, report.title),
        make("p", { class: "sentence" }, report.sentence),
        ...about,
        ...this.warnings(),
      );
    }
    if (report.live) parts.live.replaceChildren(liveSection(report));
    this.curves.section.hidden = !Object.values(report.runs).some((run) => run.eval.mean_return.length);
    this.curves.update();
    if (isNew("scores", "arms")) this.drawScores();
    this.ensemble.update();
    parts.rest.replaceChildren(...runSections(report));
    this.drawContents();
    document
      .querySelector("footer")
      .replaceChildren(
        make("p", {}, report.made),
        make(
          "p",
          {},
          "Curves are drawn by uPlot (MIT licence, © Leon Sorokin), which is part of this page." +
            (report.live ? "" : " Nothing here comes from a network."),
        ),
      );
  }

  warnings() {
    const { warnings } = this.report;
    if (!warnings.length) return [];
    const title =
      warnings.length === 1
        ? "One thing to know before reading on"
        : `${warnings.length} things to know before reading on`;
    return [
      make(
        "div",
        { class: "warnings", role: "region", "aria-label": "Warnings" },
        make("h2", {}, make("span", { "aria-hidden": "true" }, "⚠ "), title),
        make(
          "ul",
          {},
          warnings.map((text) => make("li", {}, text)),
        ),
      ),
    ];
  }

  drawScores() {
    const { tables, intervals, profiles } = this.report.scores;
    if (!tables.length && !intervals.length && !profiles.length) return this.parts.scores.replaceChildren();
    const figures = [
      ...intervals.map((content) => intervalPicture(content, this.report.arms)),
      ...profiles.map((content) => profilePicture(content, this.report.arms)),
    ];
    const section = make(
      "section",
      { id: "scores", "aria-labelledby": "scores-title" },
      make("h2", { id: "scores-title" }, "Scores"),
    );
    for (const table of tables)
      section.append(
        sortedTable(table.title, table.columns, table.rows),
        ...(table.note ? [make("p", { class: "note" }, table.note)] : []),
      );
    section.append(make("div", { class: "charts" }, figures));
    return this.parts.scores.replaceChildren(section);
  }

  drawContents() {
    const links = [...this.main.querySelectorAll("section[id]")]
      .filter((section) => !section.hidden)
      .map((section) => make("li", {}, make("a", { href: `#${section.id}` }, section.querySelector("h2").textContent)));
    document.querySelector("nav ul").replaceChildren(...links);
  }

  /** The same in other colours. */
  repaint() {
    forgetInks();
    this.curves.redraw();
    this.ensemble.redraw();
  }

  /** What changed since the last time: parts of the report, and runs. What one was at stays as it was. */
  take(change) {
    const { runs, gone, ...parts } = change;
    Object.assign(this.report, parts);
    for (const run of runs ?? []) this.report.runs[run.id] = received(run);
    for (const id of gone ?? []) delete this.report.runs[id];
    const restore = this.remembered();
    this.draw(parts);
    restore();
  }

  /** What is open, how far it is scrolled, and what has the focus, to be found again by their places. */
  remembered() {
    const all = (selector) => [...this.main.querySelectorAll(selector)];
    const named = (details) => details.querySelector("summary").textContent;
    const open = new Set(all("details[open]").map(named));
    const scrolls = all(".scroll, .folds").map((box) => [
      box.getAttribute("aria-label") ?? box.className,
      box.scrollTop,
      box.scrollLeft,
    ]);
    const focused = document.activeElement;
    const section = focused?.closest("section")?.id;
    const places = () => all(`#${section} :is(a, button, input, select, summary, [tabindex])`);
    const place = section ? places().indexOf(focused) : -1;
    return () => {
      for (const details of all("details:not([open])")) details.open = open.has(named(details));
      for (const box of all(".scroll, .folds")) {
        const found = scrolls.find(([name]) => name === (box.getAttribute("aria-label") ?? box.className));
        if (found) [, box.scrollTop, box.scrollLeft] = found;
      }
      if (place >= 0 && !focused.isConnected) places()[place]?.focus({ preventScroll: true });
    };
  }
}

// -- themes and print ------------------------------------------------------------------------------------------------------

function themeButton(page) {
  const button = document.getElementById("theme");
  const say = () => button.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
  const remembered = (() => {
    try {
      return localStorage.getItem("sunrise-theme");
    } catch {
      return null; // a browser may keep nothing for a file
    }
  })();
  if (remembered === "dark" || remembered === "light") document.documentElement.dataset.theme = remembered;
  button.addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem("sunrise-theme", theme);
    } catch {
      // it holds until the page is closed
    }
    say();
    page.repaint();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    say();
    page.repaint();
  });
  say();
  button.hidden = false;
}

function printWell(page) {
  const set = (now) => {
    document.documentElement.classList.toggle("printing", now);
    page.repaint();
    page.curves.drawRest(true);
  };
  addEventListener("beforeprint", () => set(true));
  addEventListener("afterprint", () => set(false));
}

// -- while runs go on ------------------------------------------------------------------------------------------------------

/** Ask for what changed, again and again; a server that is gone is said so. */
async function follow(page, token) {
  const state = document.getElementById("live");
  state.hidden = false;
  let since = token;
  for (;;) {
    try {
      const answer = await fetch(`data?since=${encodeURIComponent(since)}`, { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.statusText);
      const { token: next, ...change } = await answer.json();
      if (next !== since) page.take(change);
      since = next;
      state.textContent = "● live";
      state.className = "live";
    } catch {
      state.textContent = "○ not connected";
      state.className = "lost";
    }
    await new Promise((resume) => setTimeout(resume, document.hidden ? 10000 : 2000));
  }
}

const content = JSON.parse(document.getElementById("report").textContent);
const page = new Page(content);
themeButton(page);
printWell(page);
if (content.live) follow(page, content.token);
window.sunriseReport = page; // for those who want the numbers: sunriseReport.report.runs
