// A table that can be sorted has a button in each header. The first press sorts upwards, the next one downwards; rows without a
// value come last. Without scripts, the table keeps its order.
const order = new Intl.Collator("en", { numeric: true });
for (const table of /** @type {NodeListOf<HTMLTableElement>} */ (document.querySelectorAll("table.sortable"))) {
  const [body] = table.tBodies;
  const headers = [...table.tHead.rows[0].cells];
  const sort = (column, upwards) => {
    /** @param {HTMLTableRowElement} row */
    const value = (row) => row.cells[column].dataset.value ?? "";
    body.append(...[...body.rows].sort((a, b) =>
      Number(!value(a)) - Number(!value(b)) || (upwards ? 1 : -1) * order.compare(value(a), value(b))));
  };
  headers.forEach((header, column) => {
    if (![...body.rows].some((row) => row.cells[column].dataset.value)) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => {
      const upwards = header.ariaSort !== "ascending";
      headers.forEach((other) => other.removeAttribute("aria-sort"));
      header.setAttribute("aria-sort", upwards ? "ascending" : "descending");
      sort(column, upwards);
    });
  });
}
