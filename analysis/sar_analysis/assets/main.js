// The page's wiring: which episode is open, what time it is there, and every way to change that.

const $ = (id) => document.getElementById(id);
const player = { replay: null, name: null, t: 0, playing: false, last: 0, draw: null };

function choices() {
  return new URLSearchParams(location.hash.slice(1));
}

function remember() {
  if (player.name === null) return;
  const address = `#episode=${encodeURIComponent(player.name)}&t=${Math.round(player.t / 10)}`;
  if (location.hash !== address) history.replaceState(null, "", address);
}

async function open(name, t) {
  pause();
  const element = [...document.querySelectorAll("script[data-replay]")].find((script) => script.dataset.replay === name);
  $("replay").hidden = false;
  if (!element) {
    forget();
    $("replay-title").textContent = "Replay";
    $("replay-message").textContent = `There is no replay of ${name} in this page.`;
    return;
  }
  const replay = openReplay(await unpack(element));
  const place = [...document.querySelectorAll("script[data-scene]")].find((script) => script.dataset.scene === replay.scene);
  const scene = place ? await unpack(place) : null;
  $("stage").hidden = false;
  $("replay-title").textContent = `Replay: ${name}`;
  $("replay-message").textContent = scene ? "" : "The map is missing: this bag does not hold its world. Everything else is drawn.";
  Object.assign(player, { replay, name, draw: openMap($("map"), $("scanned"), replay, scene) });
  $("time").max = replay.end;
  listMoments();
  listGates();
  for (const row of document.querySelectorAll("#episode-table tbody tr")) row.classList.toggle("current", row.querySelector("a")?.dataset.open === name);
  show(Math.min(Math.max(t, 0), replay.end));
  speak();
}

function forget() {
  Object.assign(player, { replay: null, name: null });
  $("stage").hidden = true;
}

function close() {
  pause();
  const row = document.querySelector("#episode-table tr.current a");
  forget();
  $("replay").hidden = true;
  history.replaceState(null, "", "#episodes");
  row?.focus();
}

function listMoments() {
  const replay = player.replay, strip = $("strip"), list = $("events");
  strip.setAttribute("viewBox", `0 0 ${replay.end} 14`);
  strip.replaceChildren();
  list.replaceChildren();
  const colours = { collision: "#d55e00", decoy: "#d55e00", displaced: "#d55e00", near_miss: "#b08000", geofence: "#b08000", right: "#0072b2", failsafe: "#cc79a7", phase: "#888888" };
  if (replay.search) strip.append(make("rect", { x: replay.search[0], width: replay.search[1] - replay.search[0], y: 11, height: 3, fill: "#888888" }));
  for (const moment of replay.moments) {
    const wide = Math.max(replay.end / 200, moment.until - moment.t);
    strip.append(make("rect", { x: moment.t, width: wide, y: moment.kind === "phase" ? 9 : 0, height: moment.kind === "phase" ? 5 : 10, fill: colours[moment.kind] ?? "#888888" }));
    const button = document.createElement("button"), item = document.createElement("li");
    button.type = "button";
    button.textContent = `${seconds(moment.t)} s  ${moment.text}`;
    button.dataset.kind = moment.kind;
    button.addEventListener("click", () => jump(moment.t));
    item.append(button);
    list.append(item);
  }
  if (!replay.moments.length) list.textContent = "Nothing happened that would be an event.";
}

function listGates() {
  const replay = player.replay, head = $("gates").tHead, body = $("gates").tBodies[0];
  head.replaceChildren();
  body.replaceChildren();
  const top = head.insertRow();
  for (const text of ["drone", "height", "doing", ...replay.devices.map((d) => words(d.kind))]) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = text;
    top.append(cell);
  }
  replay.tracks.forEach((_, n) => {
    const row = body.insertRow(), name = document.createElement("th"), swatch = document.createElement("span");
    swatch.className = "swatch";
    swatch.style.background = COLOURS[n % COLOURS.length];
    name.scope = "row";
    name.append(swatch, String(n + 1));
    row.append(name);
    for (let k = 0; k < 2 + replay.devices.length; k++) row.insertCell();
  });
  $("gate-key").hidden = !replay.radio;
}

function fact(name, text) {
  const row = document.createElement("tr"), head = document.createElement("th"), cell = document.createElement("td");
  head.scope = "row";
  head.textContent = name;
  cell.textContent = text;
  row.append(head, cell);
  return row;
}

function show(t) {
  const replay = player.replay;
  player.t = t;
  const gates = gatesAt(replay, t), covered = coverageAt(replay, t), r = replay.reports;
  player.draw(t, [...gates.values()], $("links").checked);
  $("time").value = Math.round(t);
  const searched = replay.search ? Math.min(Math.max(t, replay.search[0]), replay.search[1]) - replay.search[0] : null;
  const phase = searched === null ? "no search" : t < replay.search[0] ? "take-off" : t > replay.search[1] ? "after the search" : `search ${seconds(searched)} s`;
  $("clock").textContent = `${seconds(t)} of ${seconds(replay.end)} s, ${phase}`;
  $("time").setAttribute("aria-valuetext", `${seconds(t)} seconds, ${phase}`);
  const past = (list) => list.filter((k) => r.t[k] <= t).length;
  const hit = replay.events.filter((e) => COLLISIONS.includes(e.kind) && e.begin <= t).length;
  $("facts").tBodies[0].replaceChildren(
    fact("coverage", covered === null ? "the search has not begun" : `${(100 * covered).toFixed(1)} %`),
    fact("collisions so far", hit),
    fact("victims found", replay.radio ? past(r.issues.right) : "no radio"),
    fact("displaced so far", replay.radio ? past(r.issues.displaced) : "no radio"),
    fact("decoy alarms so far", replay.radio ? past(r.issues.decoy) : "no radio"),
  );
  [...$("gates").tBodies[0].rows].forEach((row, n) => {
    const failsafe = stateAt(replay.failsafes[n], t), doing = stateAt(replay.phases[n], t);
    row.cells[1].textContent = `${seconds(between(replay.tracks[n].z, replay.step, t))} m`;
    row.cells[2].textContent = failsafe === "nominal" ? doing : failsafe;
    row.cells[2].className = failsafe === "nominal" ? "" : "bad";
    replay.devices.forEach((_, d) => {
      const gate = gates.get(`${n + 1}/${d}`), cell = row.cells[3 + d], mark = document.createElement("span");
      mark.textContent = gate ? GATE_LETTERS[gate.state] ?? "?" : "–";
      mark.className = gate && gate.open ? "unlocked" : "";
      mark.title = gate ? `${words(replay.gates.names[gate.state] ?? "unknown")}, phase gate ${gate.open ? "open" : "closed"}` : "not heard yet";
      cell.replaceChildren(mark);
    });
  });
  [...$("events").children].forEach((item, k) => {
    const moment = replay.moments[k];
    item.classList?.toggle("now", moment.t <= t && t <= moment.until + SHOWN);
  });
}

// Said aloud only when the time stands still, or a listener would hear nothing else.
function speak() {
  const now = player.replay.moments.filter((m) => m.t <= player.t && player.t <= m.until + SHOWN).map((m) => m.text);
  $("spoken").textContent = [`${seconds(player.t)} seconds`, ...now].join(", ");
  remember();
}

function jump(t) {
  if (!player.replay) return;
  show(Math.min(Math.max(t, 0), player.replay.end));
  if (!player.playing) speak();
}

function step(direction) {
  const times = player.replay.moments.map((m) => m.t);
  const there = direction > 0 ? times.find((t) => t > player.t) : times.filter((t) => t < player.t).at(-1);
  if (there !== undefined) jump(there);
}

function play() {
  if (player.t >= player.replay.end) show(0);
  player.playing = true;
  player.last = performance.now();
  $("play").textContent = "Pause";
  $("play").setAttribute("aria-pressed", "true");
  requestAnimationFrame(advance);
}

function pause() {
  const was = player.playing;
  player.playing = false;
  $("play").textContent = "Play";
  $("play").setAttribute("aria-pressed", "false");
  if (was) speak();
}

function advance(now) {
  if (!player.playing) return;
  const t = player.t + ((now - player.last) / 100) * Number($("speed").value);
  player.last = now;
  show(Math.min(t, player.replay.end));
  if (player.t >= player.replay.end) pause(); else requestAnimationFrame(advance);
}

function key(event) {
  if (!player.replay || event.ctrlKey || event.altKey || event.metaKey) return;
  const on = event.target, typing = on.matches("input:not(#time), select, textarea"), pressing = on.matches("button, a, summary");
  if (typing || (pressing && (event.key === " " || event.key === "Enter"))) return;
  const far = event.shiftKey ? 100 : 10;
  const act = {
    " ": () => (player.playing ? pause() : play()), ArrowRight: () => jump(player.t + far), ArrowLeft: () => jump(player.t - far),
    Home: () => jump(0), End: () => jump(player.replay.end), n: () => step(1), p: () => step(-1), Escape: close,
  }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

async function follow() {
  const name = choices().get("episode");
  if (name === null) return;
  await open(name, 10 * Number(choices().get("t") ?? 0) || 0);
  $("replay").scrollIntoView();
  $("replay").focus({ preventScroll: true });
}

watchEpisodes();
$("play").addEventListener("click", () => (player.playing ? pause() : play()));
$("next").addEventListener("click", () => step(1));
$("previous").addEventListener("click", () => step(-1));
$("close").addEventListener("click", close);
$("links").addEventListener("change", () => show(player.t));
$("time").addEventListener("input", () => jump(Number($("time").value)));
document.addEventListener("keydown", key);
window.addEventListener("hashchange", follow);
window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((details) => (details.open = true)));
follow();
