(() => {
  const source = document.getElementById("pairs");
  if (!source) return;
  const data = JSON.parse(source.textContent), count = data.items.length;
  const form = document.getElementById("compare"), told = document.getElementById("compared");
  const first = document.getElementById("compare-first"), second = document.getElementById("compare-second");
  const error = (i, j) => {
    if (data.variances) return Math.sqrt(data.variances[i] + data.variances[j]);
    const [low, high] = i < j ? [i, j] : [j, i];
    return data.errors[low * count - low * (low + 1) / 2 + high - low - 1];
  };
  // Error function to 1.5e-7: Abramowitz and Stegun 7.1.26.
  const normal = x => {
    const t = 1 / (1 + 0.3275911 * Math.abs(x) / Math.SQRT2);
    const tail = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) * Math.exp(-x * x / 2);
    return x < 0 ? tail / 2 : 1 - tail / 2;
  };
  const share = p => p > 0.999 ? "over 99.9%" : p < 0.001 ? "under 0.1%" : (100 * p).toFixed(1) + "%";
  const show = x => x.toFixed(3).replace("-", "\u2212");
  const range = (middle, half) => show(middle - half) + " to " + show(middle + half);
  const isolate = name => "\u2068" + name + "\u2069";
  const compare = () => {
    const i = Number(first.value), j = Number(second.value);
    if (i === j) { told.textContent = "Choose two different " + told.dataset.items + "."; return; }
    const apart = data.values[i] - data.values[j], se = error(i, j);
    const sure = Math.abs(apart) > data.bar * se ? "can" : "cannot";
    const a = isolate(data.items[i]), b = isolate(data.items[j]);
    told.textContent = a + " less " + b + ": " + show(apart) + " logits (standard error " + show(se) + "). "
      + "95% interval of this pair alone: " + range(apart, data.alone * se)
      + "; of all pairs at once: " + range(apart, data.together * se) + ". "
      + "Probability that " + a + " is the " + told.dataset.scale + " one, for this pair alone: " + share(normal(apart / se)) + ". "
      + "Among all " + told.dataset.items + ", the two " + sure + " be told apart at 95%.";
  };
  for (const list of [first, second]) list.append(...data.items.map((name, place) => new Option(name, place)));
  second.value = String(count - 1);
  form.addEventListener("input", compare);
  form.hidden = told.hidden = false;
  compare();
})();
