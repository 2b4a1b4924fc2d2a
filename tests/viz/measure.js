// What a browser made of the pages in the frames of this one, as JSON in #findings.

const visible = (rect) => Math.max(rect.width, rect.height) > 0.5;
const within = (a, b) =>
  a.left >= b.left - 1 && a.right <= b.right + 1 && a.top >= b.top - 1 && a.bottom <= b.bottom + 1;

// Boxes of labels are higher than their letters.
const letters = (rect) => ({
  left: rect.left + 0.5, right: rect.right - 0.5,
  top: rect.top + rect.height * 0.2, bottom: rect.bottom - rect.height * 0.2,
});
const meet = (a, b) =>
  a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

function measureDrawing(svg) {
  const frame = svg.getBoundingClientRect();
  const scale = frame.width / svg.viewBox.baseVal.width;
  const labels = [...svg.querySelectorAll("text")];
  const shapes = [...svg.querySelectorAll("path, use")].filter((shape) => !shape.closest("defs"));
  const boxes = labels.map((label) => letters(label.getBoundingClientRect()));
  const overlaps = [];
  boxes.forEach((box, i) => {
    for (let j = 0; j < i; j++) {
      if (meet(box, boxes[j])) overlaps.push([labels[j].textContent, labels[i].textContent]);
    }
  });
  return {
    width: frame.width,
    labels: labels.map((label) => label.textContent),
    smallest: Math.min(...labels.map((l) => scale * parseFloat(getComputedStyle(l).fontSize))),
    shapes: shapes.filter((shape) => visible(shape.getBoundingClientRect())).length,
    outside: labels
      .filter((item) => !within(item.getBoundingClientRect(), frame))
      .map((item) => item.outerHTML.slice(0, 200)),
    overlaps,
  };
}

// What the pointer finds in the middle of each link or word with a title: [its own, found].
function hover(page) {
  return [...page.querySelectorAll("a > title, [title]")].map((item) => {
    const shape = item.tagName === "title" ? item.parentNode : item;
    const title = (element) =>
      element?.getAttribute("title") ?? element?.closest("a")?.querySelector("title")?.textContent;
    shape.scrollIntoView({ block: "center" });
    const box = shape.getBoundingClientRect();
    const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
    const found = page.elementsFromPoint(x, y).filter((element) => title(element));
    return [title(shape), title(found[0]) ?? null];
  });
}

// Where a click on each link leads: [its target's text, whether it is in view and marked].
async function follow(page, window) {
  const steps = [];
  for (const link of page.querySelectorAll("svg a")) {
    link.dispatchEvent(new window.MouseEvent("click", { bubbles: true, cancelable: true }));
    await new Promise((resolve) => setTimeout(resolve, 20));
    const target = page.querySelector(":target");
    if (target === null) { steps.push([null, false]); continue; }
    const box = target.getBoundingClientRect();
    const inView = box.top >= -1 && box.top < window.innerHeight;
    const marked = window.getComputedStyle(target).backgroundColor !== "rgba(0, 0, 0, 0)";
    steps.push([target.textContent, inView && marked]);
  }
  return steps;
}

async function measure(frame) {
  const page = frame.contentDocument, window = frame.contentWindow;
  const width = window.innerWidth;
  return {
    name: frame.name,
    width,
    wider: [...page.querySelectorAll("body *")]
      .filter((element) => element.getBoundingClientRect().right > width + 1)
      .map((element) => element.outerHTML.slice(0, 200)),
    scrolls: page.documentElement.scrollWidth > width,
    height: page.documentElement.scrollHeight,
    loaded: window.performance.getEntriesByType("resource").map((entry) => entry.name),
    drawings: [...page.querySelectorAll("svg")].map(measureDrawing),
    hover: hover(page),
    links: await follow(page, window),
  };
}

window.addEventListener("load", async () => {
  const findings = [];
  for (const frame of document.querySelectorAll("iframe")) findings.push(await measure(frame));
  document.querySelector("#findings").textContent = JSON.stringify(findings);
});
