"use strict";
const get = (id) => document.getElementById(id);
const data = JSON.parse(get("data").textContent);
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const DAY = 86400;
const date = (day) => new Date(day * DAY * 1000).toISOString().slice(0, 10);
const units = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const time = (ns) => { if (ns == null) return "no time"; const [size, unit] = units.find(([size]) => ns >= size) || units[3]; return `${(ns / size).toPrecision(4)} ${unit}`; };
const percent = (share) => share == null ? "" : `${(100 * share).toFixed(1)} %`;
const bytes = (count) => count == null ? "" : count < 1024 ? `${count} B` : `${(count / 1024).toPrecision(3)} KiB`;
const some = (values) => values.some((value) => value != null);
const SIGNS = { change: "▲", step: "◆", machine: "⚙", code: "§" }, FEW = 12;
// Nights have no hours. Months and years are shown without their days.
const DAYS = [1, 2, 3, 5, 10, 15, 30, 60, 90, 180, 365, 730];
const dates = (u, stamps, axis, space, step) => stamps.map((stamp) => step < 30 * DAY ? date(stamp / DAY).slice(5) : date(stamp / DAY).slice(0, 7));
let charts = [], row = data[0], at = -1;

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function marked(u) {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.lineWidth = devicePixelRatio;
  ctx.font = `${12 * devicePixelRatio}px system-ui`;
  for (const { night, kind } of row.marks) {
    const x = u.valToPos(night * DAY, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    // Kinds differ in dashes and signs, not in colour alone.
    ctx.strokeStyle = ctx.fillStyle = css({ change: "--red", step: "--amber", machine: "--far", code: "--far" }[kind]);
    ctx.setLineDash({ change: [], step: [6, 4], machine: [2, 3], code: [1, 5] }[kind].map((part) => part * devicePixelRatio));
    ctx.beginPath(); ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke();
    ctx.fillText(SIGNS[kind], x + 3 * devicePixelRatio, bbox.top + (kind === "code" ? 26 : 12) * devicePixelRatio);
  }
  ctx.restore();
}

function draw(id, columns, format, hooks = {}) {
  const target = get(id);
  target.replaceChildren();
  target.closest("section").hidden = !some(columns[0]);
  if (!some(columns[0])) return null;
  const axis = { stroke: css("--ink"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line") } };
  const hidden = { show: true, stroke: "transparent", points: { show: false } };
  const options = {
    width: Math.max(target.clientWidth, 200), height: 260, legend: { show: false }, hooks,
    scales: { x: { time: true } }, tzDate: (stamp) => uPlot.tzDate(new Date(stamp * 1000), "Etc/UTC"),
    axes: [{ ...axis, incrs: DAYS.map((days) => days * DAY), values: dates }, { ...axis, size: 80, values: (u, values) => values.map(format) }],
    series: [{}, { stroke: css("--blue"), width: 1.5, points: { size: 4 } }, ...columns.slice(1).map(() => hidden)],
    bands: columns.length > 2 ? [{ series: [3, 2], fill: css("--band") }] : [],
  };
  const made = new uPlot(options, [row.night.map((day) => day * DAY), ...columns], target);
  charts.push(made);
  return made;
}

function told(place) {
  if (place == null || place < 0) return;
  at = place;
  const day = row.night[at];
  const code = row.registers[at] == null ? "" : `, ${row.registers[at]} registers, ${bytes(row.stack[at]) || "unknown"} stack`;
  const interval = row.low[at] == null ? "" : ` (${time(row.low[at])} to ${time(row.high[at])})`;
  const what = row.marks.filter((mark) => mark.night === day).map((mark) => `; ${mark.text}`).join("");
  const why = row.failed[at] ? `: ${row.failed[at]}` : "";
  const share = row.share[at] == null ? "" : `, ${percent(row.share[at])} of the ceiling`;
  get("night").textContent = `${date(day)}: ${time(row.time[at])}${interval}${why}${share}${code}, commit ${row.commits[row.commit[at]].slice(0, 10) || "unknown"}${what}`;
}

function go(place) {
  told(Math.min(Math.max(place, 0), row.night.length - 1));
  const chart = charts[0];
  if (chart) chart.setCursor({ left: chart.valToPos(row.night[at] * DAY, "x"), top: 20 }, false);
}

function link(url, text) { return url ? element("a", text, { href: url }) : document.createTextNode(text); }

function happened(all) {
  const shown = all ? row.marks : row.marks.slice(-FEW);
  get("all").hidden = shown.length === row.marks.length;
  get("all").textContent = `Show all ${row.marks.length}`;
  get("marks").tBodies[0].replaceChildren(...[...shown].reverse().map((mark) => {
    const line = element("tr"), button = element("button", "show", { type: "button", "aria-label": `Show the night of ${date(mark.night)}` });
    button.addEventListener("click", () => { go(row.night.findIndex((day) => day >= mark.night)); get("time").focus(); });
    line.append(element("td", date(mark.night)), element("td", `${SIGNS[mark.kind]} ${mark.kind}: ${mark.text}`), element("td"));
    line.lastChild.append(button);
    return line;
  }));
  if (!row.marks.length) { const line = element("tr"); line.append(element("td", "Nothing.", { colspan: 3 })); get("marks").tBodies[0].append(line); }
}

function tables() {
  happened(false);
  const last = row.night.map((_, place) => place).slice(-30).reverse();
  get("nights").tBodies[0].replaceChildren(...last.map((place) => {
    const line = element("tr"), commit = row.commits[row.commit[place]], run = row.runs[row.run[place]];
    const seconds = row.compile[place], count = row.registers[place];
    const numbers = [row.time[place] == null ? row.failed[place] : time(row.time[place]), percent(row.share[place]), count == null ? "" : `${count}`, bytes(row.stack[place]), bytes(row.shared[place]), bytes(row.code[place]), seconds == null ? "" : `${seconds} s`];
    line.append(element("td", date(row.night[place])), ...numbers.map((text) => element("td", text, { class: "number" })), element("td"), element("td"));
    const [commits, runs] = [...line.cells].slice(-2);
    if (commit) commits.append(link(row.repository && `${row.repository}/commit/${commit}`, commit.slice(0, 10)));
    if (run) runs.append(link(run, "run"));
    return line;
  }));
}

function svg(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  return made;
}

const decades = ([low, high]) => Array.from({ length: 40 }, (_, place) => 10 ** (place - 6)).filter((value) => value >= low && value <= high);
const short = (value) => { const [size, prefix] = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1, ""]].find(([size]) => value >= size) || [1, ""]; return `${value / size} ${prefix}`; };

function roofline() {
  const points = row.flops.map((flops, place) => [flops / row.bandwidth[place], flops, place]).filter(([x, y]) => x > 0 && y > 0 && isFinite(x));
  const target = get("roof"), section = target.closest("section");
  section.hidden = !points.length || !row.copy || !row.matmul;
  if (section.hidden) return;
  const knee = row.matmul / row.copy, xs = [...points.map(([x]) => x), knee], ends = [Math.min(...xs) / 4, Math.max(...xs) * 4];
  const ceiling = (x) => Math.min(x * row.copy, row.matmul);
  const ys = [Math.min(ceiling(ends[0]), ...points.map(([, y]) => y)) / 2, row.matmul * 2];
  const wide = Math.min(Math.max(target.clientWidth, 280), 800), high = 300, [left, bottom] = [88, high - 44];
  const scale = (value, [low, most], from, to) => from + (to - from) * Math.log(value / low) / Math.log(most / low);
  const X = (x) => scale(x, ends, left, wide - 10).toFixed(1), Y = (y) => scale(y, ys, bottom, 10).toFixed(1);
  const made = svg("svg", { viewBox: `0 0 ${wide} ${high}`, width: wide, height: high });
  for (const x of decades(ends)) made.append(svg("path", { class: "grid", d: `M${X(x)},10V${bottom}` }), svg("text", { x: X(x), y: bottom + 16, "text-anchor": "middle" }, `${x}`));
  for (const y of decades(ys)) made.append(svg("path", { class: "grid", d: `M${left},${Y(y)}H${wide - 10}` }), svg("text", { x: left - 6, y: +Y(y) + 4, "text-anchor": "end" }, `${short(y)}FLOP/s`));
  made.append(svg("text", { x: (left + wide) / 2, y: high - 8, "text-anchor": "middle" }, "FLOP per byte"));
  made.append(svg("path", { d: `M${X(ends[0])},${Y(ceiling(ends[0]))}L${X(knee)},${Y(row.matmul)}L${X(ends[1])},${Y(row.matmul)}` }));
  for (const [x, y, place] of points.slice(-120)) made.append(svg("circle", { cx: X(x), cy: Y(y), r: 4, "fill-opacity": (0.1 + 0.6 * (place + 1) / row.night.length).toFixed(2) }));
  const [x, , last] = points.at(-1), share = percent(row.share[last]);
  const said = `Ceilings: copy ${(row.copy / 1e12).toPrecision(3)} TB/s, matmul ${(row.matmul / 1e12).toPrecision(3)} TFLOP/s. This row: ${x.toPrecision(3)} FLOP per byte${share ? `, ${share} of its ceiling` : ""} on ${date(row.night[last])}.`;
  target.replaceChildren(element("p", said, { class: "hint" }), made);
}

function show() {
  charts.forEach((chart) => chart.destroy());
  charts = [];
  const timed = some(row.time), hooks = { draw: [marked], setCursor: [(u) => told(u.cursor.idx)] };
  get("untimed").hidden = timed;
  get("h-time").textContent = timed ? "Time of a call" : "Registers of a thread";
  if (timed) draw("time", [row.time, row.low, row.high], time, hooks);
  else draw("time", [row.registers], String, hooks);
  get("time").closest("section").hidden = false;
  draw("share", [row.share], percent);
  draw("registers", [timed ? row.registers : []], String);
  draw("error", [row.error], String);
  draw("psnr", [row.psnr], (value) => `${value} dB`);
  roofline();
  tables();
  told(row.night.length - 1);
}

function choose() {
  row = data.find((each) => each.id === location.hash.slice(1)) || data[0];
  get("row").value = row.id;
  get("stands").textContent = get("row").selectedOptions[0].text;
  show();
}

get("row").addEventListener("change", () => { history.replaceState(null, "", `#${get("row").value}`); choose(); });
get("all").addEventListener("click", () => { happened(true); get("marks").querySelector("button").focus(); });
get("time").addEventListener("keydown", (event) => {
  const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: row.night.length - 1 }[event.key];
  if (to != null) { event.preventDefault(); go(to); }
});
addEventListener("hashchange", choose);
addEventListener("theme", show);
let pending;
addEventListener("resize", () => { clearTimeout(pending); pending = setTimeout(show, 150); });
choose();
document.documentElement.dataset.ready = "yes";
