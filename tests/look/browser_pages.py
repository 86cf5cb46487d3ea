"""Pages in a real browser: opening one, and what of it cannot be read."""

LONG = 180_000
"""Milliseconds: a machine without graphics draws slowly."""
FAULTS = """() => {
  const found = [];
  const seen = (e) => { const s = getComputedStyle(e); const r = e.getBoundingClientRect();
    return s.visibility !== "hidden" && s.display !== "none" && r.width > 0 && r.height > 0; };
  const words = (e) => e.textContent.trim().slice(0, 40);
  // Text that is cut off: wider than what holds it, where nothing scrolls.
  const texts = "h1,h2,h3,p,td,th,summary,.badge,.caption,.key,.number";
  for (const e of document.querySelectorAll(texts)) {
    if (!seen(e)) continue;
    if (e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline")
      found.push(["cut", words(e)]);
    const box = e.closest(".scroll, .card");
    if (box && e.getBoundingClientRect().right > box.getBoundingClientRect().right + 1)
      found.push(["beyond its card", words(e)]);
  }
  if (document.documentElement.scrollWidth > innerWidth) found.push(["page", "scrolls sideways"]);
  // Labels of one figure that lie over each other, and figures without a drawn line.
  for (const figure of document.querySelectorAll(".figure")) {
    const title = words(figure.closest(".card").querySelector("h3"));
    const labels = [...figure.querySelectorAll(
      ".xtick text, .ytick text, .xtitle, .ytitle, .legendtext")].filter(seen);
    const boxes = labels.map((e) => e.getBoundingClientRect());
    for (let i = 0; i < boxes.length; i++) for (let j = 0; j < i; j++) {
      const a = boxes[i], c = boxes[j];
      const across = Math.min(a.right, c.right) - Math.max(a.left, c.left);
      const down = Math.min(a.bottom, c.bottom) - Math.max(a.top, c.top);
      if (across > 2 && down > 3)
        found.push(["overlap", title, words(labels[i]), words(labels[j])]);
    }
    const outer = figure.getBoundingClientRect();
    labels.forEach((e, i) => { const r = boxes[i];
      if (r.left < outer.left - 1 || r.right > outer.right + 1 || r.top < outer.top - 1 ||
          r.bottom > outer.bottom + 1) found.push(["outside", title, words(e)]); });
    const drawn = [...figure.querySelectorAll(
      ".scatterlayer path.js-line, .scatterlayer .point, .scatterlayer .js-fill")];
    const solid = figure._fullLayout.scene && figure.querySelector("canvas") &&
      figure._fullData.some((trace) => trace.x.length > 1);
    if (!solid && !drawn.some((e) => (e.getAttribute("d") || "").length > 3))
      found.push(["empty", title]);
  }
  return found;
}"""
"""What of a page cannot be read: text cut off, labels over each other, figures without a line."""


def opened(browser, path, width=1280, height=900):
    """Return the page when all is drawn, with what it asked for and complained about."""
    page = browser.new_page(viewport={"width": width, "height": height})
    page.set_default_timeout(LONG)
    page.asked, page.errors = [], []
    page.on("request", lambda request: page.asked.append(request.url))
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("console", lambda m: page.errors.append(m.text) if m.type == "error" else None)
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]", state="attached")
    return page
