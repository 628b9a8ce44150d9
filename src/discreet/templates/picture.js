(() => {
  // Marks with words show them to a pointer, a finger and the arrow keys; then they lead to their row.
  const told = document.createElement("div");
  told.className = "told";
  told.setAttribute("role", "status");
  document.body.append(told);
  const known = new WeakMap();
  let current = null;
  const wordsOf = mark => {
    const title = mark.querySelector(":scope > title");
    if (title) {
      known.set(mark, title.textContent);
      title.remove();  // or the browser shows them a second time
    }
    return known.get(mark);
  };
  const names = new Map();
  document.querySelectorAll("table.sortable tbody th, tbody th").forEach(head => {
    const name = head.textContent.trim();
    if (!names.has(name)) names.set(name, head);
  });
  const headOf = words => {
    const line = words.split("\n")[0];
    for (let end = line.length; end > 0; end -= 1) {
      const whole = end === line.length || ":,.".includes(line[end]);
      if (whole && names.has(line.slice(0, end))) return names.get(line.slice(0, end));
    }
    return null;
  };
  const hide = () => {
    if (current) current.classList.remove("chosen");
    current = null;
    told.textContent = "";
  };
  const show = mark => {
    if (mark === current) return;
    hide();
    told.textContent = wordsOf(mark);
    current = mark;
    mark.classList.add("chosen");
    const place = mark.getBoundingClientRect(), own = told.getBoundingClientRect();
    const most = document.documentElement.clientWidth - own.width - 8;
    const left = Math.max(8, Math.min(place.left + place.width / 2 - own.width / 2, most));
    const above = place.top - own.height - 8;
    told.style.left = `${left}px`;
    told.style.top = `${above > 0 ? above : place.bottom + 8}px`;
  };
  const lead = mark => {
    const head = headOf(wordsOf(mark));
    if (!head) return;
    const link = head.querySelector("a");
    if (link) return link.click();
    const row = head.parentElement;
    document.querySelectorAll("tr.chosen").forEach(other => other.classList.remove("chosen"));
    for (let box = row.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    row.hidden = false;
    row.classList.add("chosen");
    row.tabIndex = -1;
    row.scrollIntoView({block: "center"});
    row.focus({preventScroll: true});
  };
  const markAt = event => {
    const mark = event.target.closest("svg > *");
    return mark && wordsOf(mark) ? mark : null;
  };
  document.querySelectorAll("svg:has(title)").forEach(picture => {
    const marks = [...picture.querySelectorAll(":scope > *")].filter(mark => mark.querySelector(":scope > title"));
    let fresh = false;
    picture.tabIndex = 0;
    picture.addEventListener("pointerover", event => {
      const mark = markAt(event);
      fresh = event.pointerType === "touch" && mark !== current;
      if (mark) show(mark); else hide();
    });
    picture.addEventListener("pointerleave", event => { if (event.pointerType !== "touch") hide(); });
    picture.addEventListener("click", event => {
      const mark = markAt(event);
      // The first touch of a finger only shows what a pointer would have seen before.
      if (mark && !fresh) lead(mark);
      fresh = false;
    });
    picture.addEventListener("keydown", event => {
      const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
      const at = marks.indexOf(current);
      if (step) show(marks[at < 0 ? (step > 0 ? 0 : marks.length - 1) : (at + step + marks.length) % marks.length]);
      else if (event.key === "Enter" && at >= 0) lead(current);
      else if (event.key === "Escape") hide();
      else return;
      event.preventDefault();
    });
    picture.addEventListener("blur", hide);
  });
  addEventListener("scroll", hide, {passive: true});
})();
