// One episode on a map. Times are tenths of a second, places decimetres, as the packed data has them.

const SVG = "http://www.w3.org/2000/svg";
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#8f7a00", "#7a5195", "#444444"];
const COLLISIONS = ["drone_drone", "drone_obstacle", "drone_ground"];
const GATE_LETTERS = "APRCF";
const TAIL = 200, SHOWN = 40;

async function unpack(element) {
  const bytes = Uint8Array.from(atob(element.textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

function summed(steps) {
  let total = 0;
  return steps.map((step) => (total += step));
}

function make(name, attributes = {}, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function words(name) {
  return name.replaceAll("_", " ");
}

function seconds(tenths) {
  return (tenths / 10).toFixed(1);
}

// The last index whose time is not after t, or -1: times ascend.
function upTo(times, t) {
  let low = 0, high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= t) low = middle + 1; else high = middle;
  }
  return low - 1;
}

function between(values, step, t) {
  if (values.length === 1) return values[0];
  const at = Math.min(Math.max(t / step, 0), values.length - 1), k = Math.min(Math.floor(at), values.length - 2);
  return values[k] + (at - k) * (values[k + 1] - values[k]);
}

// Unpacked columns, and everything worth jumping to in the order of time.
function openReplay(data) {
  const replay = { ...data };
  replay.tracks = data.tracks.map((track) => Object.fromEntries(Object.entries(track).map(([k, v]) => [k, summed(v)])));
  replay.devices = data.devices.map((d) => ({ ...d, x: summed(d.x), y: summed(d.y) }));
  replay.reports = { ...data.reports, t: summed(data.reports.t) };
  replay.gates = { ...data.gates, t: summed(data.gates.t) };
  replay.moments = moments(replay);
  return replay;
}

function moments(replay) {
  const found = [], r = replay.reports;
  const of = (k) => (r.device[k] >= 0 ? words(replay.devices[r.device[k]].kind) : "unknown");
  for (const event of replay.events) {
    const who = event.other ? `drones ${event.uav} and ${event.other}` : `drone ${event.uav}`;
    const what = { drone_drone: "collision", drone_obstacle: `collision with ${event.obstacle}`, drone_ground: "collision with the ground",
      geofence: "left the geofence", near_miss: "near miss" }[event.kind] ?? words(event.kind);
    const kind = COLLISIONS.includes(event.kind) ? "collision" : event.kind;
    const lasts = event.end > event.begin ? `, ${seconds(event.end - event.begin)} s` : "";
    found.push({ t: event.begin, until: event.end, kind, x: event.x, y: event.y, text: `${what}: ${who}${lasts}, least distance ${(event.least_cm / 100).toFixed(2)} m` });
  }
  const verdicts = { right: "victim found, right", displaced: "displaced issue of a victim", decoy: "decoy alarm" };
  for (const [kind, what] of Object.entries(verdicts)) for (const k of r.issues[kind]) found.push({ t: r.t[k], until: r.t[k], kind, x: r.x[k], y: r.y[k], text: `${what}: drone ${r.uav[k]}, transmitter: ${of(k)}, confidence ${(r.confidence[k] / 1000).toFixed(3)}` });
  replay.failsafes.forEach((changes, drone) => {
    for (const [t, state] of changes) if (state !== "nominal") found.push({ t, until: t, kind: "failsafe", drone, text: `failsafe: drone ${drone + 1}, ${words(state)}` });
  });
  if (replay.search) {
    found.push({ t: replay.search[0], until: replay.search[0], kind: "phase", text: "search begins" });
    found.push({ t: replay.search[1], until: replay.search[1], kind: "phase", text: "search ends" });
  }
  return found.sort((a, b) => a.t - b.t);
}

// The drawing: still things once, moving things by draw(t).
function openMap(svg, canvas, replay, scene) {
  const [west, south, east, north] = replay.area_m;
  const corners = scene && scene.fence.length ? scene.fence : [[west, south], [east, north]];
  const xs = [...corners.map((c) => c[0]), west, east], ys = [...corners.map((c) => c[1]), south, north];
  const view = { x: Math.min(...xs) - 8, y: Math.min(...ys) - 8 };
  view.w = Math.max(...xs) + 8 - view.x;
  view.h = Math.max(...ys) + 8 - view.y;
  const X = (metres) => metres - view.x, Y = (metres) => view.y + view.h - metres;
  const dm = (x, y) => `${X(x / 10).toFixed(1)} ${Y(y / 10).toFixed(1)}`;
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${view.w} ${view.h}`);
  svg.parentNode.style.setProperty("--ratio", view.w / view.h);
  if (scene) {
    const obstacles = make("g");
    scene.obstacles.forEach(([kind, x, y, a, b, yaw, top], k) => {
      const shape = kind === 0
        ? make("rect", { x: X(x) - a, y: Y(y) - b, width: 2 * a, height: 2 * b, transform: `rotate(${(-yaw * 180) / Math.PI} ${X(x)} ${Y(y)})` })
        : make("circle", { cx: X(x), cy: Y(y), r: a });
      shape.setAttribute("class", "obstacle");
      shape.append(make("title", {}, `${scene.names[k]}, ${top.toFixed(1)} m high`));
      obstacles.append(shape);
    });
    svg.append(obstacles, make("polygon", { class: "fence", points: scene.fence.map(([x, y]) => `${X(x)},${Y(y)}`).join(" ") }));
  }
  svg.append(make("rect", { class: "area", x: X(west), y: Y(north), width: east - west, height: north - south }));
  const links = make("g", { id: "link-layer" }), devices = make("g"), tails = make("g"), reports = make("g", { id: "report-layer" });
  const drones = make("g", { id: "drone-layer" }), touches = make("g", { id: "touch-layer" });
  svg.append(links, devices, tails, reports, touches, drones);
  const marks = replay.devices.map((device) => {
    const mark = make("g", { class: "device", "data-kind": device.kind });
    if (device.kind === "victim") mark.append(make("circle", { class: "near", r: 10 }), make("circle", { class: "victim", r: 4 }), make("circle", { r: 1.2, fill: "currentColor" }));
    else mark.append(make("rect", { class: "decoy", x: -3, y: -3, width: 6, height: 6, transform: "rotate(45)" }));
    mark.append(make("title", {}, `${words(device.kind)} ${device.address}`));
    devices.append(mark);
    return mark;
  });
  const crafts = replay.tracks.map((_, n) => {
    const colour = COLOURS[n % COLOURS.length];
    const craft = make("g", { class: "drone", "data-drone": n + 1 }), body = make("path", { d: "M8 0L-5 5L-2 0L-5 -5Z", fill: colour, stroke: "#fff", "stroke-width": 0.8 });
    craft.append(body, make("text", { y: -10 }, n + 1));
    drones.append(craft);
    const tail = make("polyline", { class: "tail", stroke: colour });
    tails.append(tail);
    return { craft, body, tail };
  });
  const paint = openScanned(canvas, replay, { left: X(west) / view.w, top: Y(north) / view.h, width: (east - west) / view.w, height: (north - south) / view.h });

  function place(n, t) {
    const track = replay.tracks[n];
    return ["x", "y", "z", "heading"].map((name) => between(track[name], replay.step, t));
  }

  return function draw(t, gates, showLinks) {
    paint(t);
    const sites = replay.devices.map((d) => [between(d.x, 10, t), between(d.y, 10, t)]);
    sites.forEach(([x, y], k) => marks[k].setAttribute("transform", `translate(${dm(x, y)})`));
    const here = crafts.map(({ craft, body, tail }, n) => {
      const [x, y, z, heading] = place(n, t), track = replay.tracks[n], points = [];
      craft.setAttribute("transform", `translate(${dm(x, y)})`);
      craft.dataset.height = (z / 10).toFixed(1);
      body.setAttribute("transform", `rotate(${-heading})`);
      for (let k = Math.max(0, Math.ceil((t - TAIL) / replay.step)); k * replay.step < t && k < track.x.length; k++) points.push(dm(track.x[k], track.y[k]));
      tail.setAttribute("points", [...points, dm(x, y)].join(" "));
      return [x, y];
    });
    links.replaceChildren();
    if (showLinks) gates.forEach((gate) => {
      if (gate.device < 0 || !gate.open || gate.state === 2) return;
      const [x1, y1] = here[gate.uav - 1], [x2, y2] = sites[gate.device];
      links.append(make("path", { class: gate.state === 0 || gate.state === 4 ? "link" : "link predict", d: `M${dm(x1, y1)}L${dm(x2, y2)}` }));
    });
    drawReports(t);
    touches.replaceChildren();
    for (const moment of replay.moments) {
      if (moment.x === undefined || !(moment.t <= t && t <= moment.until + SHOWN)) continue;
      const [x, y] = dm(moment.x, moment.y).split(" ");
      if (moment.kind === "collision" || moment.kind === "near_miss" || moment.kind === "geofence") {
        touches.append(make("circle", { class: `touch ${moment.kind}`, cx: x, cy: y, r: 12 }));
        touches.append(make("circle", { class: `touch ${moment.kind}`, cx: x, cy: y, r: 6 }));
      } else touches.append(make("circle", { class: `touch ${moment.kind}`, cx: x, cy: y, r: 14, style: moment.kind === "right" ? "stroke:#0072b2" : "" }));
    }
  };

  // The newest word on each transmitter: a cross, heavy where it is confident, blue if right and orange if wrong.
  function drawReports(t) {
    const r = replay.reports, newest = new Map();
    for (let k = upTo(r.t, t); k >= 0; k--) if (!newest.has(`${r.device[k]}/${r.uav[k]}`)) newest.set(`${r.device[k]}/${r.uav[k]}`, k);
    reports.replaceChildren();
    for (const k of newest.values()) {
      const sure = Boolean(r.confident[k]), kind = sure ? (r.right[k] ? "right" : "wrong") : "unsure", [x, y] = dm(r.x[k], r.y[k]).split(" ").map(Number);
      if (x < 0 || y < 0 || x > view.w || y > view.h) continue;
      const arm = sure ? 6 : 3, shape = kind === "right" ? `M${x - arm} ${y}h${2 * arm}M${x} ${y - arm}v${2 * arm}` : `M${x - arm} ${y - arm}l${2 * arm} ${2 * arm}m${-2 * arm} 0l${2 * arm} ${-2 * arm}`;
      const mark = make("path", { class: `report ${kind}`, d: shape, opacity: (0.35 + 0.65 * (r.confidence[k] / 1000)).toFixed(2) });
      mark.append(make("title", {}, `drone ${r.uav[k]}: confidence ${(r.confidence[k] / 1000).toFixed(3)}, ${r.right[k] ? "its victim is" : "no victim of this transmitter"} within 10 m`));
      reports.append(mark);
    }
  }
}

// Scanned cells as pixels under the map: redrawn once a second of search.
function openScanned(canvas, replay, box) {
  const cells = replay.cells;
  canvas.hidden = !cells;
  if (!cells) return () => {};
  for (const [side, part] of Object.entries(box)) canvas.style[side] = `${100 * part}%`;
  const rows = cells.seconds.length / cells.columns, context = canvas.getContext("2d");
  canvas.width = cells.columns;
  canvas.height = rows;
  const colour = getComputedStyle(document.documentElement).getPropertyValue("--scanned").split(",").map(Number);
  const image = context.createImageData(cells.columns, rows);
  let last = null;
  return function paint(t) {
    const now = Math.floor((t - replay.search[0]) / 10);
    if (now === last) return;
    last = now;
    cells.seconds.forEach((second, k) => {
      const at = 4 * ((rows - 1 - Math.floor(k / cells.columns)) * cells.columns + (k % cells.columns));
      [image.data[at], image.data[at + 1], image.data[at + 2]] = colour;
      image.data[at + 3] = second >= 0 && second <= now ? 90 : 0;
    });
    context.putImageData(image, 0, 0);
  };
}

function coverageAt(replay, t) {
  if (!replay.cells || t < replay.search[0]) return null;
  const now = (t - replay.search[0]) / 10;
  return replay.cells.seconds.filter((second) => second >= 0 && second <= now).length / replay.cells.seconds.length;
}

// The state of every gate at a time: the last change of each drone and transmitter.
function gatesAt(replay, t) {
  const g = replay.gates, found = new Map();
  for (let k = upTo(g.t, t); k >= 0; k--) {
    const key = `${g.uav[k]}/${g.device[k]}`;
    if (!found.has(key)) found.set(key, { uav: g.uav[k], device: g.device[k], open: Boolean(g.open[k]), state: g.state[k] });
  }
  return found;
}

function stateAt(changes, t) {
  const k = upTo(changes.map((change) => change[0]), t);
  return k < 0 ? "unknown" : words(changes[k][1]);
}
