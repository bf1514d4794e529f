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

function compare(one, two) {
  const figures = one !== "" && two !== "" ? one - two : NaN;
  return Number.isNaN(figures) ? one.localeCompare(two, "en", { numeric: true }) : figures;
}

// Headings of tables become buttons that sort; figures sort by their value, not by how they are written.
for (const table of document.querySelectorAll("table.sorts")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  const value = (row, place) => row.cells[place].dataset.sort ?? row.cells[place].textContent.trim();
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
  if (body.rows.length <= 12) continue;
  const filter = document.createElement("input");
  filter.type = "search";
  filter.className = "filter";
  filter.placeholder = "show rows with this text";
  filter.setAttribute("aria-label", "show rows with this text");
  filter.addEventListener("input", () => {
    const text = filter.value.toLowerCase();
    for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(text);
  });
  table.before(filter);
}
