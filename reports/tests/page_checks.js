// What every page must keep, asked of the page itself: headings, names, tables, and the contrast of every visible text.
(() => {
  const faults = [];
  const all = (selector) => [...document.querySelectorAll(selector)];
  const shown = (element) => element.checkVisibility({checkVisibilityCSS: true, checkOpacity: true});
  const about = (element) => `${element.outerHTML.slice(0, 90)}`;

  if (!document.documentElement.lang) faults.push("the page has no language");
  if (!document.title.trim()) faults.push("the page has no title");
  for (const [landmark, count] of [["main", 1], ["header", 1], ["h1", 1]]) {
    if (all(landmark).length !== count) faults.push(`${all(landmark).length} of ${landmark}`);
  }
  let level = 0;
  for (const head of all("h1,h2,h3,h4,h5,h6")) {
    const now = Number(head.tagName[1]);
    if (now > level + 1) faults.push(`a heading leaps from ${level} to ${now}: ${about(head)}`);
    if (!head.textContent.trim()) faults.push(`an empty heading: ${about(head)}`);
    level = now;
  }

  const ids = all("[id]").map((element) => element.id);
  for (const id of new Set(ids)) if (ids.filter((other) => other === id).length > 1) faults.push(`the id ${id} is there twice`);
  for (const element of all("[aria-labelledby]")) {
    for (const id of element.getAttribute("aria-labelledby").split(/\s+/)) {
      if (!document.getElementById(id)) faults.push(`aria-labelledby ${id} names nothing`);
    }
  }

  const nameOf = (element) => (element.getAttribute("aria-label")
    || (element.getAttribute("aria-labelledby") || "").split(/\s+/).map((id) => (document.getElementById(id) || {}).textContent).join("")
    || (element.labels ? [...element.labels].map((label) => label.textContent).join("") : "")
    || (element.matches("a,button,summary") ? element.textContent : "")).trim();
  for (const element of all("a[href],button,input,select,summary,[role=img],[role=group],section,nav")) {
    if (!nameOf(element)) faults.push(`without a name: ${about(element)}`);
  }
  for (const element of all("[tabindex]")) if (element.tabIndex > 0) faults.push(`a tab order of its own: ${about(element)}`);
  for (const element of all("*")) {
    const style = getComputedStyle(element);
    if (shown(element) && /auto|scroll/.test(style.overflowX) && element.scrollWidth > element.clientWidth + 1
        && element.tabIndex < 0 && !element.querySelector("a,button,input,select")) faults.push(`scrolls for the mouse only: ${about(element)}`);
  }
  for (const table of all("table")) {
    if (!table.caption || !table.caption.textContent.trim()) faults.push(`a table without a caption: ${about(table)}`);
    for (const head of table.querySelectorAll("th")) if (!head.scope) faults.push(`a head of nothing: ${about(head)}`);
    for (const row of table.tBodies[0].rows) {
      const columns = [...row.cells].reduce((sum, cell) => sum + cell.colSpan, 0);
      if (columns !== table.tHead.rows[0].cells.length) faults.push(`${columns} columns: ${about(row)}`);
    }
  }

  const channels = (colour) => (colour.match(/[\d.]+/g) || []).map(Number);
  const luminance = ([red, green, blue]) => {
    const [r, g, b] = [red, green, blue].map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [dim, bright] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (bright + 0.05) / (dim + 0.05);
  };
  const groundOf = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = channels(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const low = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let texts = 0;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || element.closest("script,style,title,desc,noscript") || !shown(element)) continue;
    texts += 1;
    const style = getComputedStyle(element), inFigure = element.namespaceURI.endsWith("svg");
    const found = contrast(channels(inFigure ? style.fill : style.color), groundOf(element));
    // Text on a coloured bar of a figure stands on the bar: the bars' own test judges it. Shapes are marks, not text.
    const onBar = inFigure && found < 1.2;
    const needed = element.classList.contains("shape") ? 3 : 4.5;
    if (found < needed && !onBar) low.set(`${found.toFixed(2)}: ${about(element)}`, true);
  }
  faults.push(...[...low.keys()].slice(0, 5).map((text) => `contrast ${text}`));
  const wide = document.documentElement.scrollWidth - innerWidth;
  if (wide > 0) faults.push(`${wide} pixels wider than the window`);
  return {faults, texts};
})()
