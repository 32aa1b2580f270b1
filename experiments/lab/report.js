// Tables of results are sorted by their headings: upwards, downwards, and as they were.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  table.classList.add("live");
  const headings = [...table.tHead.rows[0].cells];
  const key = (row, column) => {
    const cell = row.cells[column];
    return "value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent.trim();
  };
  const compare = (one, two) => (typeof one === "number" && typeof two === "number" ? one - two : String(one).localeCompare(String(two), "en", { numeric: true }));
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const next = { none: "ascending", ascending: "descending", descending: "none" }[heading.getAttribute("aria-sort") ?? "none"];
      headings.forEach((each) => each.removeAttribute("aria-sort"));
      if (next !== "none") heading.setAttribute("aria-sort", next);
      const sign = next === "descending" ? -1 : 1;
      const known = (row) => row.cells[column].textContent.trim() !== "–";
      const sorted = next === "none" ? rows : [...rows].sort((one, two) => known(two) - known(one) || sign * compare(key(one, column), key(two, column)));
      body.append(...sorted);
    });
  });
}
