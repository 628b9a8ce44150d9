(() => {
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
      } catch { label.textContent = "The studio does not answer. Was it stopped?"; }
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
      say("Reading …");
      try {
        const told = await (await fetch(reading.action, { method: "POST", body })).json();
        if (mine !== turn) return;
        if (told.problem) say(told.problem); else follow(told.job, mine);
      } catch { say("The studio does not answer. Was it stopped?"); }
    };
    reading.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(send, 500); });
    reading.addEventListener("submit", () => { clearTimeout(waiting); turn++; });
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
        status.textContent = "The file could not be sent: it may be too large, or the studio was stopped.";
        bar.hidden = true;
      });
      bar.hidden = false;
      status.textContent = "Sending " + file.files[0].name;
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
