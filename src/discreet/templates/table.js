(() => {
  const collator = new Intl.Collator(undefined, {numeric: true});
  const words = text => text === "–" ? "" : text;
  const value = (row, column) => row.cells[column].dataset.value ?? words(row.cells[column].textContent);
  const compare = (a, b) => {
    const x = Number(a), y = Number(b);
    return Number.isNaN(x) || Number.isNaN(y) ? collator.compare(a, b) : x - y;
  };
  const sort = (table, column, sign) => {
    const rows = [...table.tBodies[0].rows].sort((first, second) => {
      const a = value(first, column), b = value(second, column);
      // What has no number comes last in either direction.
      return a === "" || b === "" ? (a === "") - (b === "") : sign * compare(a, b);
    });
    table.tBodies[0].append(...rows);
  };
  const prepare = table => {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      sort(table, column, down ? -1 : 1);
    }));
    const filter = document.getElementById("filter"), kind = document.getElementById("kind");
    const shown = document.getElementById("shown"), rows = [...table.tBodies[0].rows];
    const narrow = () => {
      const wanted = filter.value.trim().toLowerCase(), tag = kind ? kind.value : "";
      let count = 0;
      for (const row of rows) {
        const named = row.cells[0].textContent.toLowerCase().includes(wanted);
        row.hidden = !(named && (!tag || row.dataset.tags.split(" ").includes(tag)));
        count += !row.hidden;
      }
      shown.textContent = shown.dataset.shown.replace("{count}", count).replace("{total}", rows.length);
    };
    filter.addEventListener("input", narrow);
    if (kind) kind.addEventListener("change", narrow);
  };
  const found = document.querySelector("table.sortable");
  if (found) prepare(found);
  document.querySelectorAll("button.copy[data-source]").forEach(button => button.addEventListener("click", () => {
    const source = document.getElementById(button.dataset.source);
    const done = () => { button.textContent = document.body.dataset.copied || "Copied"; };
    const select = () => { getSelection().selectAllChildren(source); };
    // A page opened from a disk may not use the clipboard; then the text is at least selected.
    if (navigator.clipboard) navigator.clipboard.writeText(source.innerText).then(done, select);
    else select();
  }));
})();
