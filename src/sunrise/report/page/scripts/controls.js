// What one sets above the curves: which methods and seeds are drawn, how smooth, along which axis, and which part.

const AXES = { timesteps: "timesteps", env_steps: "simulator steps", hours: "hours" };

function fillControls(curves, runs) {
  const seeds = [...new Set(runs.map((run) => run.seed))].sort((a, b) => a - b);
  const hours = runs.some((run) => run.eval.hours);
  const simulated = runs.some((run) => run.action_repeat !== 1);
  const axes = Object.keys(AXES).filter((name) => name === "timesteps" || (name === "hours" ? hours : simulated));
  curves.axis = axes.includes(curves.axis) ? curves.axis : "timesteps";
  curves.controls.replaceChildren(
    toggleButtons(curves, "Methods", curves.report.arms, "arms", (arm, place) => [
      lineSample(place),
      make("span", {}, arm),
    ]),
    toggleButtons(curves, "Seeds", seeds, "seeds", (seed) => [String(seed)]),
    smoothingSlider(curves, runs),
    axisChoice(curves, "Axis", axes),
    make(
      "fieldset",
      {},
      make("legend", {}, "Show"),
      checkBox(curves, "interval", "band"),
      checkBox(curves, "single seeds", "singles"),
    ),
    zoomButtons(curves),
  );
}

function toggleButtons(curves, title, names, kind, content) {
  for (const name of curves.hidden[kind]) if (!names.includes(name)) curves.hidden[kind].delete(name);
  const buttons = names.map((name, place) => {
    const button = make(
      "button",
      { type: "button", class: "toggle", "aria-pressed": String(!curves.hidden[kind].has(name)) },
      content(name, place),
    );
    button.addEventListener("click", () => {
      const gone = curves.hidden[kind];
      if (gone.has(name)) gone.delete(name);
      else gone.add(name);
      button.setAttribute("aria-pressed", String(!gone.has(name)));
      curves.draw();
    });
    return button;
  });
  return make(
    "fieldset",
    { class: `toggles ${kind}` },
    make("legend", {}, title),
    make("div", { class: "wrap" }, buttons),
  );
}

function smoothingSlider(curves, runs) {
  const longest = Math.max(1, ...runs.map((run) => run.eval.mean_return.length));
  const most = Math.max(1, Math.min(25, Math.floor(longest / 4)));
  const id = newId("smoothing");
  const output = make("output", { for: id });
  const say = () => (output.textContent = curves.width === 1 ? "none" : `${curves.width} evaluations`);
  const slider = make("input", { type: "range", id, min: 0, max: most, step: 1, value: (curves.width - 1) / 2 });
  slider.addEventListener("input", () => {
    curves.width = 2 * Number(slider.value) + 1;
    slider.setAttribute("aria-valuetext", curves.width === 1 ? "none" : `mean over ${curves.width} evaluations`);
    say();
    curves.draw();
  });
  say();
  return make(
    "fieldset",
    { class: "smoothing" },
    make("legend", {}, make("label", { for: id }, "Smoothing")),
    make("div", { class: "wrap" }, slider, output),
  );
}

function axisChoice(curves, title, names) {
  const group = newId("axis");
  const options = names.map((name) => {
    const input = make("input", { type: "radio", name: group, value: name });
    input.checked = name === curves.axis;
    input.addEventListener("change", () => {
      curves.axis = name;
      curves.group.range = null;
      curves.draw();
      curves.group.zoom(null);
    });
    return make("label", { class: "radio" }, input, make("span", {}, AXES[name]));
  });
  return make(
    "fieldset",
    { class: "choice" },
    make("legend", {}, title),
    make("div", { class: "wrap joined" }, options),
  );
}

function checkBox(curves, text, name) {
  const input = make("input", { type: "checkbox" });
  input.checked = curves[name];
  input.addEventListener("change", () => {
    curves[name] = input.checked;
    curves.draw();
  });
  return make("label", { class: "check" }, input, text);
}

function zoomButtons(curves) {
  const act = {
    "Zoom in": ["+", () => curves.group.scale(0.5)],
    "Zoom out": ["−", () => curves.group.scale(2)],
    "Move left": ["←", () => curves.group.pan(-0.25)],
    "Move right": ["→", () => curves.group.pan(0.25)],
  };
  const buttons = Object.entries(act).map(([label, [sign, click]]) =>
    make("button", { type: "button", class: "small", "aria-label": label, title: label, click }, sign),
  );
  const reset = make("button", { type: "button", class: "small", click: () => curves.group.zoom(null) }, "Reset");
  const late = [buttons[1], buttons[2], buttons[3], reset];
  const changed = (range) => late.forEach((button) => button.setAttribute("aria-disabled", String(!range)));
  curves.group.changed = changed;
  changed(curves.group.range);
  return make(
    "fieldset",
    { class: "zoom" },
    make("legend", {}, "Zoom"),
    make("div", { class: "wrap" }, buttons, reset),
  );
}
