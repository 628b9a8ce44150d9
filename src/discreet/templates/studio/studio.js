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

  // A file that is dropped is a file that was chosen; a large one shows how much of it was sent.
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
