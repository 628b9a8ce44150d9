// What is wrong with the page as it is drawn: labels, names, contrast (WCAG AA), width.
const problems = [];
const name = one => one.outerHTML.slice(0, 90);
for (const one of document.querySelectorAll("input:not([type=hidden]), select, textarea"))
  if (!one.labels.length && !one.ariaLabel && !one.getAttribute("aria-labelledby")) problems.push("no label: " + name(one));
for (const one of document.querySelectorAll("button, a"))
  if (!one.textContent.trim() && !one.ariaLabel) problems.push("no words: " + name(one));
for (const one of document.querySelectorAll("svg[role=img], progress"))
  if (!one.getAttribute("aria-label") && !one.getAttribute("aria-labelledby")) problems.push("no name: " + name(one));
for (const one of document.querySelectorAll("[aria-describedby], [aria-labelledby]"))
  for (const id of ((one.getAttribute("aria-describedby") || "") + " " + (one.getAttribute("aria-labelledby") || "")).split(" "))
    if (id && !document.getElementById(id)) problems.push("leads nowhere: " + id);
const ids = [...document.querySelectorAll("[id]")].map(one => one.id);
if (new Set(ids).size < ids.length) problems.push("an id twice: " + ids.filter((one, i) => ids.indexOf(one) < i));
if (document.querySelectorAll("h1").length !== 1 || document.querySelectorAll("main").length !== 1) problems.push("one h1 and one main");
const parse = text => (text.match(/[\d.]+/g) || []).map(Number);
const light = colour => { const [r, g, b] = colour.map(c => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const ground = one => { for (; one; one = one.parentElement) { const c = parse(getComputedStyle(one).backgroundColor); if (c.length === 3 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
const walker = document.createTreeWalker(document.querySelector("body"), NodeFilter.SHOW_TEXT);
const seen = new Set();
while (walker.nextNode()) {
  const one = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || seen.has(one) || one.closest("svg, script, option, noscript") || !one.getClientRects().length) continue;
  seen.add(one);
  const [a, b] = [light(parse(getComputedStyle(one).color).slice(0, 3)), light(ground(one))].sort((x, y) => y - x);
  if ((a + 0.05) / (b + 0.05) < 4.5) problems.push("contrast " + ((a + 0.05) / (b + 0.05)).toFixed(1) + ": " + name(one));
}
if (document.documentElement.scrollWidth > document.documentElement.clientWidth + 1) problems.push("wider than the window: " + document.documentElement.scrollWidth);
return problems;
