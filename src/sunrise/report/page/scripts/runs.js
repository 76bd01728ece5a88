// Every run: how it went, the command that made it, what it was made with, and what sets the methods apart.

const SIGNS = { running: "▶", finished: "✓", stopped: "❚❚", failed: "✕" };

function statusMark(run) {
  return make(
    "span",
    { class: `status ${run.status}` },
    make("span", { "aria-hidden": "true" }, `${SIGNS[run.status] ?? "?"} `),
    run.status,
  );
}

function progressBar(run) {
  const share = run.total_timesteps ? Math.min(run.timesteps / run.total_timesteps, 1) : 0;
  const bar = make("progress", { max: 1, value: share, "aria-label": `progress of ${run.id}` });
  return make("span", { class: "progress" }, bar, `${Math.floor(100 * share)} %`);
}

function commandLine(text) {
  const code = make("code", { class: "command" }, text);
  return make("div", { class: "commandline" }, code, copyButton(text, code));
}

/** How runs that are not finished stand, while one watches. */
function liveSection(report) {
  const runs = Object.values(report.runs);
  const counts = Object.keys(SIGNS)
    .map((status) => [status, runs.filter((run) => run.status === status).length])
    .filter(([, count]) => count);
  const open = runs.filter((run) => run.status !== "finished");
  const order = { failed: 0, stopped: 1, running: 2 };
  open.sort((a, b) => order[a.status] - order[b.status]);
  const items = open.map((run) =>
    make(
      "li",
      { class: `run ${run.status}` },
      make(
        "div",
        { class: "headline" },
        statusMark(run),
        make("b", {}, run.id),
        progressBar(run),
        make(
          "span",
          { class: "soft" },
          run.status === "running"
            ? run.left === null
              ? "time left: not known yet"
              : `${duration(run.left)} left`
            : `at ${shown(run.timesteps, 0)} of ${shown(run.total_timesteps, 0)} timesteps`,
        ),
      ),
      run.reason ? make("p", { class: "reason" }, run.reason) : null,
      run.status === "running" ? null : commandLine(run.resume),
    ),
  );
  return make(
    "section",
    { id: "progress", "aria-labelledby": "progress-title" },
    make("h2", { id: "progress-title" }, "Progress"),
    make("p", { class: "lead" }, counts.map(([status, count]) => `${count} ${status}`).join(" · ") || "No runs yet."),
    items.length ? make("ul", { class: "runs" }, items) : null,
  );
}

/** The table of runs. */
function runTable(report) {
  const columns = [
    { name: "run" },
    { name: "task" },
    { name: "method" },
    { name: "seed", number: true },
    { name: "status" },
    { name: "timesteps", number: true },
    { name: "last evaluation", number: true },
    { name: "hours", number: true },
  ];
  const last = (values) => (values?.length ? values[values.length - 1] : null);
  const rows = Object.values(report.runs).map((run) => [
    run.id,
    run.task,
    run.arm,
    run.seed,
    statusMark(run),
    { text: shown(run.timesteps, 0), value: run.timesteps },
    last(run.eval.mean_return),
    { text: shown(run.hours, 2), value: run.hours },
  ]);
  return sortedTable(`Runs: ${rows.length}`, columns, rows);
}

/** Settings by method, where methods or runs differ. */
function differenceTable(report) {
  const { differing } = report.settings;
  if (!differing.length)
    return make(
      "p",
      { class: "note" },
      report.arms.length > 1 ? "No recorded setting differs between the methods." : "There is one method.",
    );
  const columns = [{ name: "setting" }, ...report.arms.map((arm) => ({ name: arm }))];
  return sortedTable(
    "Settings that differ between methods",
    columns,
    differing.map(({ name, values }) => [
      make("code", {}, name),
      ...report.arms.map((arm) => ({ text: (values[arm] ?? []).join(" | ") || "–" })),
    ]),
  );
}

function commonTable(title, entries) {
  const rows = Object.entries(entries).map(([name, value]) => [make("code", {}, name), value]);
  return rows.length ? sortedTable(title, [{ name: "name" }, { name: "value" }], rows) : null;
}

/** Versions and machines: what is everywhere the same, and which runs have what else. */
function groundSection(report) {
  const groups = report.grounds;
  return groups.map((group, place) => {
    const title =
      groups.length === 1
        ? "Versions and machine of every run"
        : `Versions and machine ${place + 1} of ${groups.length}: ${group.runs.length} runs`;
    const runs = groups.length === 1 ? null : make("p", { class: "note" }, group.runs.join(", "));
    return lazily(title, () => [runs, commonTable(title, { ...group.versions, ...group.machine })]);
  });
}

/** A fold whose content is made when it is opened. */
function lazily(title, build) {
  const details = make("details", { class: "fold" }, make("summary", {}, title));
  let built = false;
  details.addEventListener("toggle", () => {
    if (!details.open || built) return;
    built = true;
    details.append(...build().filter(Boolean));
  });
  return details;
}

function runFolds(report) {
  return Object.values(report.runs).map((run) =>
    lazily(run.id, () => [
      make("p", {}, statusMark(run), run.reason ? `: ${run.reason}` : ""),
      run.command
        ? make("div", {}, make("h4", {}, "Command"), commandLine(run.command))
        : make("p", { class: "note" }, "Its command was not recorded."),
      run.status !== "finished" && run.resume
        ? make("div", {}, make("h4", {}, "Go on"), commandLine(run.resume))
        : null,
      commonTable(`Settings of its own: ${run.id}`, run.own),
    ]),
  );
}

function videoFigures(report) {
  return Object.values(report.runs).flatMap((run) =>
    run.videos.map(({ name, source }) =>
      make(
        "figure",
        { class: "card" },
        make("figcaption", {}, make("h3", {}, `${run.task} · ${run.arm} · seed ${run.seed}`)),
        make("video", {
          controls: true,
          preload: "metadata",
          muted: true,
          playsinline: true,
          src: source,
          "aria-label": `video ${name} of ${run.id}`,
        }),
        make(
          "p",
          { class: "note" },
          make("a", { href: source, download: source.startsWith("data:") ? name : null }, name),
        ),
      ),
    ),
  );
}

function runSections(report) {
  const videos = videoFigures(report);
  return [
    videos.length
      ? make(
          "section",
          { id: "videos", "aria-labelledby": "videos-title" },
          make("h2", { id: "videos-title" }, "Videos"),
          make("div", { class: "charts" }, videos),
        )
      : null,
    make(
      "section",
      { id: "settings", "aria-labelledby": "settings-title" },
      make("h2", { id: "settings-title" }, "What differs"),
      differenceTable(report),
      Object.keys(report.settings.common).length
        ? lazily("Settings that all runs share", () => [
            commonTable("Settings that all runs share", report.settings.common),
          ])
        : null,
      groundSection(report),
    ),
    make(
      "section",
      { id: "runs", "aria-labelledby": "runs-title" },
      make("h2", { id: "runs-title" }, "Runs"),
      runTable(report),
      make("h3", {}, "Commands and settings of each run"),
      make("div", { class: "folds" }, runFolds(report)),
    ),
  ].filter(Boolean);
}
