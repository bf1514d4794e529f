"use strict";
// A link to a table opens its section, and every section that it lies in.
function open_linked() {
  let place = document.getElementById(location.hash.slice(1));
  if (!place) return;
  for (let at = place; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  place.scrollIntoView();
}
addEventListener("hashchange", open_linked);
open_linked();

// What scrolls sideways on a narrow screen, the keyboard reaches.
const wide = document.querySelectorAll(".pair figure, .scroll");
function reach() {
  for (const part of wide) part.tabIndex = part.scrollWidth > part.clientWidth ? 0 : -1;
}
addEventListener("toggle", reach, true);
addEventListener("resize", reach);
reach();

function compare(one, two) {
  if (typeof one === "number" && typeof two === "number") return one - two;
  if (typeof one !== typeof two) return typeof one === "number" ? 1 : -1;
  return one.localeCompare(two, "en", { numeric: true });
}

// A size or a number at the beginning of a cell as a number, else the text.
const units = { "": 1, s: 1, B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, PiB: 2 ** 50 };
function figure(text) {
  const [, number, unit] = /^([\d,]+(?:\.\d+)?)(?: ([KMGTP]iB|B|s))?(?= |$)/.exec(text) ?? [];
  return number === undefined ? text : number.replaceAll(",", "") * units[unit ?? ""];
}

// Headings of tables become buttons that sort; figures sort by their value, not by how they are written.
for (const table of document.querySelectorAll("table.sorts")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  const value = (row, place) => figure(row.cells[place].textContent.trim());
  heads.forEach((head, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.title = "sort";
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const up = head.classList.contains("n") ? head.ariaSort === "descending" : head.ariaSort !== "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const rows = [...body.rows].sort((one, two) => compare(value(one, place), value(two, place)) * (up ? 1 : -1));
      body.append(...rows);
    });
  });
}

// One field at the top looks through the rows of all these tables. While there is a text in it, only what has such a
// row is shown: sections with one are opened, and closed again after it.
const searched = [...document.querySelectorAll("table.sorts")], rows = searched.flatMap((table) => [...table.tBodies[0].rows]);
if (rows.length > 12) {
  const field = document.createElement("input"), found = document.createElement("span");
  field.type = "search";
  field.className = "search";
  field.placeholder = document.getElementById("runs") ? "search tables and runs" : "search tables";
  field.setAttribute("aria-label", field.placeholder);
  found.setAttribute("role", "status");
  found.className = "soft";
  const parts = [...document.querySelectorAll("main > :not(header, footer)")], opened = new Set();
  field.addEventListener("input", () => {
    const text = field.value.trim().toLowerCase();
    for (const section of opened) section.open = false;
    opened.clear();
    for (const row of rows) {
      row.hidden = !row.textContent.toLowerCase().includes(text);
      for (let at = row; text && !row.hidden && at; at = at.parentElement) {
        if (at.tagName !== "DETAILS" || at.open) continue;
        at.open = true;
        opened.add(at);
      }
    }
    const hits = rows.filter((row) => !row.hidden);
    for (const table of searched) table.hidden = !hits.some((row) => table.contains(row));
    for (const part of parts) part.classList.toggle("aside", text !== "" && !hits.some((row) => part.contains(row)));
    try { sessionStorage.setItem(location.pathname, field.value); } catch {} // a page that is served looks again by itself
    found.textContent = text ? ` ${hits.length ? hits.length.toLocaleString("en") : "nothing"} found` : "";
  });
  document.querySelector("header").append(field, found);
  try { field.value = sessionStorage.getItem(location.pathname) ?? ""; } catch {}
  if (field.value) field.dispatchEvent(new Event("input"));
}
