(() => {
  // A form whose answer is shown while it is filled in: the page is asked for again, a moment after
  // the last change, and its live parts take the place of the old ones.
  const form = document.getElementById("live");
  let waiting = 0, asked = new AbortController();
  const show = async () => {
    asked.abort();
    asked = new AbortController();
    const address = form.action + "?" + new URLSearchParams(new FormData(form));
    try {
      const answer = await fetch(address, { signal: asked.signal });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of document.querySelectorAll("[data-live]")) part.replaceChildren(...page.getElementById(part.id).childNodes);
      history.replaceState(null, "", address);
    } catch (error) {
      if (error.name !== "AbortError") document.getElementById("said").textContent = document.body.dataset.silent;
    }
  };
  form.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(show, 250); });
  form.addEventListener("submit", event => { event.preventDefault(); clearTimeout(waiting); show(); });

  // A slider beside a number: in equal ratios, and it types into the field.
  const sliders = [];
  const number = field => Number(field.value.replace(/[,'\s\u2019](?=\d{3})/g, "").replace(",", "."));
  const end = one => typeof one.high === "number" ? one.high : number(form.elements[one.high]) || one.low;
  const neat = (value, whole) => whole ? (value < 100 ? Math.round(value) : Number(value.toPrecision(2))) : Number(value.toPrecision(2));
  const put = one => {
    const high = Math.max(end(one), one.low), value = number(one.field) || high;
    one.bar.disabled = high <= one.low;
    one.bar.value = 1000 * Math.log(Math.min(Math.max(value, one.low), high) / one.low) / Math.log(high / one.low || 2);
    one.bar.setAttribute("aria-valuetext", one.field.value || String(high));
  };
  for (const [name, [low, high]] of Object.entries(JSON.parse(form.dataset.sliders))) {
    const field = form.elements[name], label = form.querySelector(`label[for=${field.id}]`);
    const bar = Object.assign(document.createElement("input"), { type: "range", min: 0, max: 1000, step: "any", ariaLabel: form.dataset.slider.replace("{field}", label.textContent) });
    const one = { field, bar, low, high, whole: Number.isInteger(low), key: 0 };
    bar.addEventListener("keydown", event => { one.key = one.whole ? ({ ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 })[event.key] || 0 : 0; });
    bar.addEventListener("pointerdown", () => { one.key = 0; });
    bar.addEventListener("change", () => put(one));
    bar.addEventListener("input", () => {
      const top = end(one), before = number(field);
      let value = neat(one.low * (top / one.low) ** (bar.value / 1000), one.whole);
      // A key moves by one hundredth of the way, and by one at least.
      if (one.key && value === before) value = Math.min(top, Math.max(one.low, before + one.key));
      field.value = Number(bar.value) === 1000 ? top : value;
      bar.setAttribute("aria-valuetext", field.value);
      // Nobody can answer more items than there are.
      for (const other of sliders) if (other.high === name && number(other.field) > Number(field.value)) other.field.value = "";
      sliders.filter(other => other !== one).forEach(put);
    });
    field.addEventListener("input", () => sliders.forEach(put));
    field.after(bar);
    sliders.push(one);
  }
  sliders.forEach(put);
})();
