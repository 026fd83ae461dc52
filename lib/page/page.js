"use strict";
(() => {
  const text = document.getElementById("text");
  const detail = document.getElementById("detail");
  const spans = Array.from(text.getElementsByClassName("t"));
  spans.forEach((span, i) => { span.number = i; });
  // Parsed when first asked for, so that the page is there at once.
  const parsed = {};
  const read = (id) => parsed[id] ??= JSON.parse(document.getElementById(id).textContent);

  // Everything that comes from the text or a store goes in as text, never as markup.
  const make = (name, content = [], attributes = {}) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...[content].flat());
    return element;
  };
  const percent = (share) => share >= 0.0995 || share === 0 ? `${(100 * share).toFixed(0)} %` : `${(100 * share).toPrecision(2)} %`;
  const shown = (word) => word === "" ? "(part of a character)" : word.replaceAll("\n", "\u21b5");
  const bar = (share, source) => {
    const svg = document.getElementById("bar").content.firstElementChild.cloneNode(true);
    svg.firstElementChild.setAttribute("class", `o${source % 8}`);
    svg.firstElementChild.setAttribute("width", 100 * share);
    return svg;
  };

  const probability = (nats) => nats === "inf" ? 0 : Math.exp(-nats);
  const describe = (i) => {
    const word = make("b", shown(spans[i].textContent), {class: "word"});
    const heading = make("h2", [word, ` token ${i}`]);
    const known = read("tokens")[i];
    if (!known) return [heading, make("p", "Not scored: nothing stands before it.")];
    const [nats, beside, rank, likely, shares, contexts] = known;
    const {sources, stores} = read("names");
    const parts = [heading];
    const rankText = rank < 0 ? "" : rank === 0 ? ", the likeliest word" : `, ${rank} ${rank === 1 ? "word was" : "words were"} likelier`;
    parts.push(make("p", `probability ${percent(probability(nats))}, ${nats} nats${rankText}`));
    if (beside !== null && nats !== "inf") {
      const gain = beside - nats;
      parts.push(make("p", `beside: ${percent(probability(beside))}, ${beside} nats: ${Math.abs(gain).toFixed(2)} nats ${gain >= 0 ? "better" : "worse"} here`));
    }
    if (shares.length > 1)
      parts.push(make("h3", "Who gave it"), make("table", make("tbody", shares.map((share, source) =>
        make("tr", [make("th", sources[source], {scope: "row"}), make("td", [bar(share, source), ` ${percent(share)}`])])))));
    if (contexts.length > 0)
      parts.push(make("h3", "Stored contexts"), make("ol", contexts.map(([store, document_, row, share, before, source]) =>
        make("li", [make("span", `\u2026${before}`, {class: "context"}), make("b", shown(spans[i].textContent), {class: "word"}),
          make("div", `${percent(share)} \u00b7 ${source ? `${source} in ` : ""}${stores[store]}, document ${document_}, entry ${row}`, {class: "where"})]))));
    if (likely.length > 0)
      parts.push(make("h3", "Likeliest words"), make("ul", likely.map(([other, p]) => make("li", [make("b", shown(other), {class: "word"}), ` ${percent(p)}`]))));
    return parts;
  };

  let chosen = -1;
  const choose = (i) => {
    if (i < 0 || i >= spans.length) return;
    if (chosen >= 0) spans[chosen].classList.remove("chosen");
    chosen = i;
    spans[i].classList.add("chosen");
    spans[i].scrollIntoView({block: "nearest"});
    detail.replaceChildren(...describe(i));
  };
  text.addEventListener("click", (event) => {
    const span = event.target.closest(".t");
    if (span) choose(span.number);
  });
  text.addEventListener("keydown", (event) => {
    const to = {ArrowRight: chosen + 1, ArrowLeft: Math.max(chosen - 1, 0), ArrowDown: Math.min(chosen + 10, spans.length - 1),
      ArrowUp: Math.max(chosen - 10, 0), Home: 0, End: spans.length - 1}[event.key];
    if (to === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    choose(to);
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-go]");
    if (!button) return;
    choose(Number(button.dataset.go));
    text.focus();
  });
  for (const radio of document.getElementsByName("colour"))
    radio.addEventListener("change", () => { text.dataset.colour = radio.value; });
})();
