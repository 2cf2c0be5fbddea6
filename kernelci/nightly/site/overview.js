"use strict";
const get = (id) => document.getElementById(id);
const body = get("rows").tBodies[0];
const rows = [...body.rows].map((element) => {
  const [name, gpu] = [element.cells[0].textContent, element.cells[1].textContent];
  const { w: word, s: share } = element.dataset;
  return { element, name, gpu, word, share: +share, text: `${name} ${gpu}`.toLowerCase() };
});
const fields = ["find", "gpu", "word"];

function filter() {
  const [find, gpu, word] = fields.map((id) => get(id).value);
  const parts = find.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    const fits = (!gpu || row.gpu === gpu) && (!word || row.word === word) && parts.every((part) => row.text.includes(part));
    row.element.hidden = !fits;
    shown += fits;
  }
  get("shown").value = `${shown} shown`;
  get("none").hidden = shown > 0;
  const kept = new URLSearchParams(fields.map((id) => [id, get(id).value]).filter(([, value]) => value));
  history.replaceState(null, "", kept.size ? `#${kept}` : location.pathname);
}

const order = ["failed", "broken", "slower", "drifting", "not measured", "no times", "faster", "steady"];
function sort(button) {
  const by = button.dataset.by, head = button.closest("th");
  const down = head.ariaSort === "ascending";
  const key = { word: (row) => order.indexOf(row.word), share: (row) => row.share }[by] || ((row) => row[by]);
  const sign = down ? -1 : 1;
  rows.sort((a, b) => { const [x, y] = [key(a), key(b)]; return sign * (x < y ? -1 : x > y ? 1 : 0); });
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.ariaSort = down ? "descending" : "ascending";
  body.append(...rows.map((row) => row.element));
}

function addressed() {
  const given = new URLSearchParams(location.hash.slice(1));
  if (![...given.keys()].some((id) => fields.includes(id))) return;
  for (const id of fields) get(id).value = given.get(id) || "";
  filter();
}

addressed();
addEventListener("hashchange", addressed);
for (const kind of ["input", "change"]) get("filters").addEventListener(kind, filter);
get("filters").addEventListener("submit", (event) => event.preventDefault());
for (const button of document.querySelectorAll("[data-by]")) button.addEventListener("click", () => sort(button));
document.documentElement.dataset.ready = "yes";
