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
  const words = data.words;
  // One pass: a name in braces that is part of an item's own name stays as it is.
  const fill = (text, values) => text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
  const share = p => p > 0.999 ? words.over : p < 0.001 ? words.under : fill(words.percent, {percent: (100 * p).toFixed(1)});
  const show = x => x.toFixed(3).replace("-", "\u2212");
  const range = (middle, half) => fill(words.range, {low: show(middle - half), high: show(middle + half)});
  const isolate = name => "\u2068" + name + "\u2069";
  const compare = () => {
    const i = Number(first.value), j = Number(second.value);
    if (i === j) { told.textContent = words.same; return; }
    const apart = data.values[i] - data.values[j], se = error(i, j);
    told.textContent = fill(words.told, {
      first: isolate(data.items[i]), second: isolate(data.items[j]), difference: show(apart), se: show(se),
      alone: range(apart, data.alone * se), together: range(apart, data.together * se), chance: share(normal(apart / se)),
    }) + " " + (Math.abs(apart) > data.bar * se ? words.apart : words.alike);
  };
  for (const list of [first, second]) list.append(...data.items.map((name, place) => new Option(name, place)));
  second.value = String(count - 1);
  form.addEventListener("input", compare);
  form.hidden = told.hidden = false;
  compare();
})();
