// What readers take along of a living figure: the code that shows it in another page, and a picture of what it shows.
import { escaped, widthOf } from "./draw.js";

const COURSE = "Where Is a Token?";
const LICENCE = "CC BY 4.0";
const EDGE = 16; // pixels around a picture
const SIZE = 13; // of its caption's letters
const HIGH = 20; // of its caption's lines
const FINE = 2; // pixels of a PNG for one of the screen

// What a part of a picture has from the style sheet, and hands on to the parts in it.
const INHERITED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "font-family", "font-size", "font-weight", "text-anchor"];
// A mixed colour, in the form that all programs read.
const plainly = (value) => value.replace(/color\(srgb ([^)]*)\)/, (_, parts) => (
  `rgb(${parts.split(" ").slice(0, 3).map((part) => Math.round(255 * part))})`
));

/** Writes what the style sheet says into a copy's own attributes.
 *  @param {Element} copy @param {Element} original @param {Record<string, string>} [above] */
function dress(copy, original, above = {}) {
  if (original.matches(".handle")) return copy.remove(); // there is nothing to drag in a picture
  const style = getComputedStyle(original);
  const now = Object.fromEntries(INHERITED.map((name) => [name, plainly(style.getPropertyValue(name))]));
  for (const name of ["class", "style", "aria-hidden"]) copy.removeAttribute(name);
  for (const name of INHERITED) if (now[name] !== above[name]) copy.setAttribute(name, now[name]);
  if (style.opacity !== "1") copy.setAttribute("opacity", style.opacity);
  return [...copy.children].forEach((child, at) => dress(child, original.children[at], now));
}

/** The text in lines of this width; an address breaks where its parts begin. */
function broken(text, width) {
  const lines = [];
  for (const part of text.split(/(?<=\s)|(?=[?&])/)) {
    if (lines.length && widthOf(lines.at(-1) + part.trimEnd(), "") <= width) lines[lines.length - 1] += part;
    else lines.push(part);
  }
  return lines;
}

/** What the figure shows, as an SVG file that needs no other: with its caption, and where it comes from.
 *  @param {HTMLElement & { said?: string }} host @param {HTMLElement} plain @param {string} address */
function picture(host, plain, address) {
  const stage = host.querySelector(".stage");
  const shown = stage.querySelector("svg");
  const [width, height] = shown.getAttribute("viewBox").split(" ").slice(2).map(Number);
  const copy = /** @type {Element} */ (shown.cloneNode(true));
  dress(copy, shown);
  const heats = [...stage.querySelectorAll("canvas")].map((canvas) => {
    const [x, y, wide, high] = ["Left", "Top", "Width", "Height"].map((side) => canvas[`offset${side}`]);
    const large = Object.assign(document.createElement("canvas"), { width: FINE * wide, height: FINE * high });
    const pen = large.getContext("2d");
    pen.imageSmoothingEnabled = false; // a cell is a rectangle of one colour
    pen.drawImage(canvas, 0, 0, large.width, large.height);
    return `<image x="${x}" y="${y}" width="${wide}" height="${high}" href="${large.toDataURL()}"/>`;
  });

  const caption = /** @type {HTMLElement} */ (plain.querySelector(".caption-text"));
  const source = [COURSE, LICENCE, address].filter(Boolean).join(" · ");
  const lines = [caption.innerText.trim(), source].flatMap((text) => broken(text, width));
  const written = lines.map((line, at) => `<tspan x="0" y="${height + (at + 2) * HIGH}">${escaped(line.trim())}</tspan>`);
  const [wide, high] = [width + 2 * EDGE, Math.ceil(height) + (lines.length + 1) * HIGH + 2 * EDGE];
  const box = { viewBox: `${-EDGE} ${-EDGE} ${wide} ${high}`, width: wide, height: high };
  for (const [name, value] of Object.entries(box)) copy.setAttribute(name, `${value}`);
  copy.innerHTML = `<title>${escaped(host.getAttribute("aria-label"))}</title><desc>${escaped(host.said)}</desc>`
    + `<rect x="${-EDGE}" y="${-EDGE}" width="${wide}" height="${high}" fill="${getComputedStyle(stage).backgroundColor}" stroke="none"/>`
    + `${heats.join("")}${copy.innerHTML}`
    + `<text fill="${getComputedStyle(caption).color}" font-size="${SIZE}" stroke="none">${written.join("")}</text>`;
  return new XMLSerializer().serializeToString(copy);
}

/** A picture in pixels, as a PNG file.
 *  @param {string} svg @returns {Promise<Blob>} */
async function developed(svg) {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: FINE * image.width, height: FINE * image.height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve));
}

/** Adds to the menu of a figure.
 *  @param {HTMLElement} menu @param {HTMLElement} host @param {HTMLElement} plain */
export function take(menu, host, plain) {
  const name = plain.id.replace("fig-", "");
  const asSet = (address) => { // with what the reader has set
    const url = new URL(address, location.href);
    url.search = String(new URLSearchParams([...new URLSearchParams(location.search)].filter(([key]) => key.startsWith(`${name}.`))));
    if (location.hash.startsWith(`#${name}.`)) url.hash = location.hash; // where it is kept by a figure that is `unsent`
    return url.href;
  };
  const alone = () => asSet(`${document.documentElement.dataset.content_root}embed/${name}.html`);
  // The height is about right, and the script sets it when the figure says how high it is.
  const code = () => `<iframe src="${escaped(alone())}" title="${escaped(host.getAttribute("aria-label"))}" width="100%" height="${plain.offsetHeight + 80}"`
    + ' style="border: 0" loading="lazy" allow="clipboard-write"></iframe>\n'
    + '<script>addEventListener("message", ({ source, data }) => { for (const frame of document.querySelectorAll("iframe")) '
    + "if (frame.contentWindow === source && data?.livingFigure) frame.height = data.livingFigure; });</script>";
  const drawn = () => picture(host, plain, location.protocol === "file:" ? "" : asSet(`#${plain.id}`)); // a folder is no address
  const save = (blob, kind) => {
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: `${name}.${kind}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  };

  const box = document.createElement("div");
  box.innerHTML = '<div class="buttons"><button type="button">Copy the code to embed it</button><button type="button">Save as SVG</button>'
    + '<button type="button">Save as PNG</button><a target="_blank">On a page of its own</a></div>'
    + '<textarea readonly hidden rows="6" aria-label="The code that embeds this figure"></textarea>';
  const [copy, svg, png] = box.querySelectorAll("button");
  const [link, text] = [box.querySelector("a"), box.querySelector("textarea")];
  copy.addEventListener("click", async () => {
    Object.assign(text, { hidden: false, value: code() });
    text.select();
    try {
      await navigator.clipboard.writeText(text.value);
      copy.textContent = "Copied";
    } catch { copy.textContent = "Copy it from here"; } // pages may not write there, or not everywhere
    host.querySelector("[role=status]").textContent = copy.textContent;
  });
  svg.addEventListener("click", () => save(new Blob([drawn()], { type: "image/svg+xml" }), "svg"));
  png.addEventListener("click", async () => save(await developed(drawn()), "png"));
  const lead = () => { link.href = alone(); };
  link.addEventListener("click", lead);
  lead();
  menu.append(box);
}
