// The page: which screen is shown, and what the keys do. Screens other than the shelf are loaded when they are needed.

import { h, put } from "./dom.js";
import { help, keys } from "./keys.js";
import { Lab } from "./lab.js";
import { causes, entry, violation } from "./seek.js";
import { Refusal, server, takeToken } from "./server.js";
import { setup } from "./setup.js";
import { copied, rescue } from "./share.js";
import { shelf } from "./shelf.js";
import { decoded } from "./token.js";
import { passing, placeOf, read } from "./url.js";

const home = globalThis.doorwayHome ?? server;
const lab = new Lab(home);
const $ = (id) => document.getElementById(id);

function alarm(error) {
  const box = $("alert");
  box.hidden = !error;
  put(box, error ? [h("span", {}, error.message), h("button", { type: "button", onclick: () => alarm(null) }, "close")] : []);
  if (error?.away) rescue(room ?? lab).then((way) => way && box.firstChild?.append(" ", way));
}
lab.onerror = alarm;

function dialog(...content) {
  const box = $("dialog");
  put(box, content, h("p.end", {}, h("button", { type: "button", onclick: () => box.close() }, "close")));
  box.showModal();
}

const copyLink = async () => dialog(await copied(room ?? lab));

const exported = () => lab.attempt(async () => dialog((await import("./export.js")).exports(lab)));

function theme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("doorway.theme", root.dataset.theme);
}

const present = () => {
  if (!document.body.classList.toggle("present")) predict(false);
  lab.show(lab.at);
};

/** To predict: the effect of a step is hidden until the space bar is pressed. */
function predict(on) {
  lab.predict = on && !lab.story.frame.names;
  lab.asked = 0;
  document.body.classList.toggle("predict", lab.predict);
  oracle.setAttribute("aria-pressed", lab.predict);
}

const question = () => {
  if (!document.body.classList.contains("present")) present();
  predict(!lab.predict);
  lab.show(lab.at);
};
const button = (label, onclick, title) => h("button", { type: "button", onclick, title }, label);
const oracle = h("button.oracle", { type: "button", onclick: question, title: "Hide what a step does until the space bar is pressed", "aria-pressed": "false" }, "predict");
const bar = setup(lab, { start: begin }, [
  home.name === "file" ? null : [h("a.button.home", { href: "#/" }, "stories"), h("a.button", { href: "#/compare" }, "compare"), h("a.button", { href: "#/threads" }, "threads")],
  h("span.moment", {}, h("span.told", {}, button("link", copyLink, "Copy the link to this moment"),
    home.draw ? button("export", exported) : null),
    button("present", present, "Large type, for a beamer"), oracle),
  button("theme", theme, "Light or dark"), button("?", () => dialog(help()), "Keys"),
]);

lab.panels = [bar.draw, remember];

/** The screen of one moment, once a story has been opened. @type {ReturnType<typeof import("./moment.js").moment>|null} */
let screen = null;

/** What the address bar shows, as far as this page knows. If it shows something else, a reader goes there. */
let place = location.hash;

/** Keep the address bar at the moment, so that a reload and a restart of the server lose nothing. */
function remember() {
  clearTimeout(remember.timer);
  remember.timer = setTimeout(async () => {
    const { story } = lab;
    const leaves = () => story !== lab.story || location.hash !== place;
    if (!story || document.body.dataset.screen !== "lab" || leaves()) return;
    // A story of the shelf keeps its title and its notes as long as it has the steps that it has there.
    const address = await lab.address(story.place?.length === story.steps.length);
    // A step is under way. If it fails, nothing is drawn, and this moment is still the one to remember.
    if (lab.busy) { remember(); return; }
    if (leaves()) return;
    history.replaceState(null, "", address);
    place = location.hash;
    if (passing(address)) return;
    sessionStorage.setItem("doorway.last", address);
    // For another tab, after the command was started again.
    localStorage.setItem("doorway.last", `${address}\n${story.frame.algorithm}, step ${lab.at}`);
  }, 150);
}

/** The screen of the threads, which has keys of its own. */
let room = null;

function show(name, ...content) {
  // What a screen has asked for takes one of the few places for jobs at the server.
  for (const left of $("main").children) if (!content.includes(left)) left.leave?.();
  if (name !== "threads") room = null;
  document.body.dataset.screen = name;
  $("transport").hidden = name !== "lab";
  put($("main"), content);
  if (name !== "lab") {
    lab.pause();
    lab.story = null;
    bar.draw();
    sessionStorage.removeItem("doorway.last");
  }
  document.title = name === "lab" ? `${lab.story.frame.algorithm} · Doorway lab` : "Doorway lab";
}

async function stage() {
  if (!screen) {
    const { moment } = await import("./moment.js");
    screen = moment(lab, $("transport"));
    lab.panels = [bar.draw, ...screen.draws, remember];
  }
  show("lab", screen.element);
  lab.show(lab.at);
}

/**
 * Go to another group, with the steps of a story as far as they are possible there.
 * @param {string} run @param {{steps: string, at: number}} [story] @param {string} [lost]  what the group does not keep, as a sentence
 */
function begin(run, story, lost) {
  return lab.attempt(async () => {
    const before = lab.story;
    try {
      await lab.link({ run, ...story });
    } finally {
      if (lab.story !== before) await stage();
    }
    if (lost) throw new Refusal(lost, 0);
  });
}

/** Show what was told, also if it is not what the link was made of. */
const opened = (told, about) => lab.open(told, about).finally(() => lab.story && stage());

/** Show what the address bar names. */
async function route() {
  place = location.hash;
  const here = placeOf(place);
  const link = await read(place);
  const [, kind, id] = location.hash.split("?")[0].split("/");
  if (!lab.catalogue.size) lab.catalogue = new Map((await home.algorithms()).map((it) => [it.name, it]));
  if (link.screen === "lab") {
    try {
      await lab.link(link);
    } finally {
      if (lab.story) await stage();
    }
  } else if (kind === "story" || kind === "first") {
    const story = kind === "story" ? decoded(id) : undefined;
    const told = story ? await home.open({ story }) : await home.first();
    if (told.shelf) return show("shelf", shelf(await home.stories(), lab.catalogue));
    const past = told.past && (story ? { flaw: story } : "first");
    await opened(told, { place: story || past ? here : undefined, past, at: link.at, print: link.print });
  } else if (kind === "recorded" || kind === "run") {
    const past = kind === "recorded" ? { recorded: id } : { run: (await import("./compare.js")).planOf(link.rest) };
    const told = past.run ? await home.run(past.run) : await home.recorded(id);
    await opened(told, { place: here, past, at: link.at, print: link.print });
  } else if (kind === "compare") {
    show("compare", (await import("./compare.js")).comparison(lab, home));
  } else if (link.screen === "threads") {
    room = (await import("./threads.js")).threads(home, link.rest, alarm, copyLink);
    show("threads", room);
  } else if (home.name === "file") {
    await lab.open(await home.first());
    await stage();
  } else {
    show("shelf", shelf(await home.stories(), lab.catalogue));
  }
  return undefined;
}

async function arrive() {
  await takeToken();
  return route();
}

const moment = (work) => () => screen && lab.story && work();
/** Some keys do something else on the screen of the threads. */
const inRoom = (actions) => Object.fromEntries(Object.entries(actions).map(([key, action]) => [key, () => (room?.keys[key] ?? action)()]));
keys(inRoom({
  ArrowRight: () => (room ? room.move(1) : screen && lab.story && lab.forward()),
  ArrowLeft: () => (room ? room.move(-1) : screen && lab.story && lab.back()), " ": moment(() => lab.play()),
  Home: moment(() => lab.show(0)), End: moment(() => lab.show(lab.story.steps.length)),
  "[": moment(() => entry(lab, -1)), "]": moment(() => entry(lab, 1)), v: moment(() => violation(lab)),
  c: moment(() => causes(lab)), h: moment(() => screen.ask.ask()),
  b: moment(() => screen.ways.focus()), f: moment(() => screen.next.faults()), "/": moment(() => screen.next.find()),
  p: moment(present), q: moment(question), t: theme, u: moment(copyLink),
  e: moment(() => home.draw && exported()), "?": () => dialog(help()),
}), (number) => (room ? room.press(number) : screen && lab.story && screen.next.press(number)));

const saved = localStorage.getItem("doorway.theme");
if (saved) document.documentElement.dataset.theme = saved;
$("bar").append(bar.element);
addEventListener("hashchange", () => {
  clearTimeout(remember.timer);
  lab.attempt(arrive);
});
await lab.attempt(arrive);
// A place that cannot be shown leaves its sentence in the alert.
if (!$("main").firstChild) put($("main"), h("h1", {}, "No story is open"));
document.body.dataset.ready = "yes";
globalThis.doorwayLab = lab;
