(() => {
  const silent = document.body.dataset.silent;
  // The same page in another language; what else its address says stays.
  for (const link of document.querySelectorAll(".languages a")) {
    const query = new URLSearchParams(location.search);
    query.set("lang", link.lang);
    link.search = query;
  }

  // A job that runs: ask where it is, and show the page again once it has ended.
  const job = document.querySelector("[data-job]");
  if (job) {
    const label = document.getElementById("job-label"), bar = document.getElementById("job-bar");
    const ask = async () => {
      try {
        const told = await (await fetch("/jobs/" + job.dataset.job)).json();
        if (told.state !== "running") { location.reload(); return; }
        if (label.textContent !== told.label) label.textContent = told.label;
        if (told.committed) document.getElementById("job-cancel")?.remove();
        if (told.total) { bar.max = told.total; bar.value = told.done; } else bar.removeAttribute("value");
      } catch { label.textContent = silent; }
      setTimeout(ask, 300);
    };
    setTimeout(ask, 150);
  }

  // The form of a file's reading: every change is kept and read at once, and only the line above it
  // changes; the form itself stays as it is.
  const reading = document.getElementById("reading");
  if (reading) {
    const line = document.getElementById("line");
    let waiting = 0, turn = 0;
    // Only what was touched is kept before the form is sent: a marked answer is no consent.
    const touched = new Set();
    const say = words => { line.querySelector(".lead").textContent = words; };
    const follow = async (name, mine) => {
      const told = await (await fetch("/jobs/" + name)).json();
      if (mine !== turn) return;
      if (told.state === "running") { setTimeout(() => follow(name, mine), 250); return; }
      const page = new DOMParser().parseFromString(await (await fetch(location.pathname)).text(), "text/html");
      const now = page.getElementById("line");
      if (now && mine === turn) { line.replaceChildren(...now.childNodes); line.className = now.className; }
    };
    const send = async () => {
      const mine = ++turn, body = new URLSearchParams(new FormData(reading));
      body.set("live", "yes");
      body.set("touched", [...touched].join("\n"));
      say(reading.dataset.reading);
      try {
        const told = await (await fetch(reading.action, { method: "POST", body })).json();
        if (mine !== turn) return;
        if (told.problem) say(told.problem); else follow(told.job, mine);
      } catch { say(silent); }
    };
    reading.addEventListener("input", event => { touched.add(event.target.name); clearTimeout(waiting); waiting = setTimeout(send, 500); });
    reading.addEventListener("submit", () => { clearTimeout(waiting); turn++; });

    // Texts that are put in order: each has two buttons, and the field below holds what they make.
    const field = document.querySelector("#questions ~ .field [name=categories]");
    const texts = field ? field.value.split(" < ").filter(Boolean) : [];
    if (texts.length > 1 && !field.value.includes("\n")) {
      const list = Object.assign(document.createElement("ol"), { className: "order" });
      const move = (from, to) => {
        texts.splice(to, 0, ...texts.splice(from, 1));
        field.value = texts.join(" < ");
        field.dispatchEvent(new Event("input", { bubbles: true }));
        show();
        list.children[to].querySelector(to > from ? "button:last-child" : "button").focus();
      };
      const show = () => list.replaceChildren(...texts.map((text, place) => {
        const line = Object.assign(document.createElement("li"), { textContent: text + " " });
        for (const [sign, words, to] of [["↑", reading.dataset.lower, place - 1], ["↓", reading.dataset.higher, place + 1]]) {
          const button = Object.assign(document.createElement("button"), { type: "button", textContent: sign, ariaLabel: words.replace("{text}", text) });
          button.addEventListener("click", () => move(place, Math.min(Math.max(to, 0), texts.length - 1)));
          line.append(button);
        }
        return line;
      }));
      show();
      field.before(list);
      field.addEventListener("change", () => { texts.splice(0, texts.length, ...field.value.split(/\s*[<,]\s*/).filter(Boolean)); show(); });
    }
  }

  // One switch for the statistics of all pages, and a button that prints.
  for (const one of document.querySelectorAll("details.experts")) {
    one.open = sessionStorage.getItem("experts") === "yes";
    one.addEventListener("toggle", event => { if (event.target === one) sessionStorage.setItem("experts", one.open ? "yes" : "no"); });
  }
  document.querySelector("button.print")?.addEventListener("click", () => print());

  // A table that is wider than a small screen becomes cards, if it is short.
  const small = matchMedia("(max-width: 37.5rem)");
  const turnTables = () => {
    for (const box of document.querySelectorAll(".scroll:not(.grid)")) {
      const titles = [...box.querySelectorAll("thead th")].map(one => one.textContent);
      const rows = [...box.querySelectorAll("tbody tr")];
      if (!small.matches || rows.length > 15 || box.scrollWidth <= box.clientWidth) continue;
      for (const row of rows) [...row.cells].forEach((cell, place) => { cell.dataset.title = titles[place]; });
      box.classList.add("cards");
    }
  };
  small.addEventListener("change", turnTables);
  document.addEventListener("toggle", turnTables, true);
  turnTables();

  // What was typed into a form is still there after another click; it goes when the form is sent.
  for (const form of document.querySelectorAll("form[data-draft]")) {
    const name = form.getAttribute("action") + location.search.replace(/[?&]lang=\w+/, "");
    const fields = [...form.elements].filter(one => one.name && one.type !== "file" && one.type !== "hidden");
    const state = one => one.type === "radio" ? one.checked : one.value;
    for (const [place, value] of Object.entries(JSON.parse(sessionStorage.getItem(name) || "{}"))) {
      const one = fields[place];
      if (one && !document.querySelector(".problem")) one[one.type === "radio" ? "checked" : "value"] = value;
    }
    form.addEventListener("input", () => sessionStorage.setItem(name, JSON.stringify(fields.map(state))));
    form.addEventListener("submit", () => sessionStorage.removeItem(name));
  }

  // A file that is dropped or chosen is sent at once; a large one shows how much of it was sent.
  const form = document.getElementById("upload");
  if (form) {
    const file = document.getElementById("file"), bar = document.getElementById("upload-bar");
    const status = document.getElementById("upload-status");
    const send = () => {
      const request = new XMLHttpRequest();
      request.open("POST", form.action);
      request.upload.addEventListener("progress", event => {
        bar.max = event.total; bar.value = event.loaded;
      });
      request.addEventListener("load", () => {
        if (request.status < 400) { location.assign(request.responseURL); return; }
        const said = new DOMParser().parseFromString(request.responseText, "text/html");
        const problem = said.querySelector(".problem p");
        status.textContent = problem ? problem.textContent : request.responseText;
        bar.hidden = true;
      });
      request.addEventListener("error", () => {
        status.textContent = form.dataset.failed;
        bar.hidden = true;
      });
      bar.hidden = false;
      status.textContent = form.dataset.sending.replace("{file}", file.files[0].name);
      request.send(new FormData(form));
    };
    form.addEventListener("submit", event => { event.preventDefault(); send(); });
    file.addEventListener("change", () => { if (file.files.length) send(); });
    for (const name of ["dragover", "dragleave", "drop"]) {
      form.addEventListener(name, event => {
        event.preventDefault();
        form.classList.toggle("over", name === "dragover");
      });
    }
    form.addEventListener("drop", event => {
      if (!event.dataTransfer.files.length) return;
      file.files = event.dataTransfer.files;
      send();
    });
  }
})();
