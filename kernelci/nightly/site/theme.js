"use strict";
// Before the page is drawn, so that it does not flash: what was chosen here last, else what the system says.
(() => {
  const stored = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const system = matchMedia("(prefers-color-scheme: dark)");
  const show = () => { document.documentElement.dataset.theme = stored() || (system.matches ? "dark" : "light"); };
  show();
  system.addEventListener("change", () => { show(); dispatchEvent(new Event("theme")); });
  addEventListener("DOMContentLoaded", () => document.getElementById("theme").addEventListener("click", () => {
    const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("theme", next); } catch { /* a page on disk may not store anything */ }
    document.documentElement.dataset.theme = next;
    dispatchEvent(new Event("theme"));
  }));
})();
