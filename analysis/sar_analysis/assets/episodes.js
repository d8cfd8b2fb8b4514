// The table of episodes: sorted by any heading, narrowed by what went wrong or by name.

function watchEpisodes() {
  const table = document.getElementById("episode-table");
  const form = document.getElementById("filters");
  if (!table) { form.hidden = true; return; }
  const body = table.tBodies[0];
  const rows = [...body.rows];

  function value(row, column) {
    const cell = row.cells[column];
    if (column === 0) return cell.textContent;
    const raw = cell.dataset.value;
    if (raw === undefined) return null;
    return raw !== "" && !isNaN(raw) ? Number(raw) : raw;
  }

  function sort(heading) {
    const column = heading.cellIndex;
    const down = heading.getAttribute("aria-sort") === "ascending";
    for (const other of heading.parentNode.cells) other.setAttribute("aria-sort", "none");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const order = (a, b) => {
      const one = value(a, column), two = value(b, column);
      if (one === null || two === null) return (one === null) - (two === null);
      const less = typeof one === "number" && typeof two === "number" ? one - two : String(one).localeCompare(String(two));
      return down ? -less : less;
    };
    body.append(...rows.sort(order));
  }

  function filter() {
    const show = form.elements.show.value, text = form.elements.text.value.trim().toLowerCase();
    let count = 0;
    for (const row of rows) {
      const fits = show === "all" || Number(row.dataset[show]) > 0;
      row.hidden = !(fits && row.cells[0].textContent.toLowerCase().includes(text));
      count += !row.hidden;
    }
    document.getElementById("shown").textContent = `${count} of ${rows.length} shown`;
  }

  for (const heading of table.tHead.rows[0].cells) heading.firstChild.addEventListener("click", () => sort(heading));
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  filter();
}
