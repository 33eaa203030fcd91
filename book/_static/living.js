// Loads what living figures need, when the first of them comes near: figures are modules of book/living, which the site's build
// (tools/sphinx/living.py) has written as calls of `living.define`, since a page opened from a folder may load no modules.
// @ts-ignore: no line here reads it, but other scripts do
const living = (() => {
  const { src, dataset } = /** @type {HTMLScriptElement} */ (document.currentScript);
  const wanted = new Map(); // name -> a promise of what the module exports, or of the data
  const found = new Map(); // name -> what resolves that promise
  const factories = new Map(); // name -> [what it needs, the function that makes it]

  const load = (name) => {
    if (!wanted.has(name)) {
      wanted.set(name, new Promise((resolve, reject) => {
        found.set(name, resolve);
        const script = document.createElement("script");
        script.src = new URL(`living/${name}.js?v=${dataset.version}`, src).href;
        script.onerror = () => {
          wanted.delete(name); // to be asked for again when the network is back
          script.remove();
          reject(new Error("A part of this figure could not be loaded. Check your connection, and try again."));
        };
        document.head.append(script);
      }));
    }
    return wanted.get(name);
  };
  const data = (name, value) => found.get(name)(value);
  const define = (name, needs, make) => {
    factories.set(name, [needs, make]);
    data(name, Promise.all(needs.map(load)).then((parts) => make(...parts)));
  };
  // The text of a module and of all it needs, for a worker: it ends with their exports in an object `modules`.
  const source = (name, seen = new Set()) => {
    const [needs, make] = factories.get(name);
    const first = seen.size ? "" : "\"use strict\";\nconst modules = {};\n";
    seen.add(name);
    const before = needs.filter((other) => !seen.has(other)).map((other) => source(other, seen)).join("");
    return `${first}${before}modules[${JSON.stringify(name)}] = (${make})(${needs.map((other) => `modules.${other}`)});\n`;
  };

  // Until it starts, a living figure is not seen: the plain one is watched in its stead.
  const hosts = new Map();
  const near = new IntersectionObserver((entries) => entries.forEach(async ({ isIntersecting, target }) => {
    if (!isIntersecting) return;
    near.unobserve(target);
    const host = hosts.get(target);
    const [{ start }, { figure }] = await Promise.all([load("element"), load(host.getAttribute("figure"))]);
    start(host, figure);
  }), { rootMargin: "200% 0px" });
  customElements.define("living-figure", class extends HTMLElement {
    connectedCallback() {
      const plain = document.getElementById(this.getAttribute("for"));
      if (hosts.has(plain)) return; // it has come into its place
      hosts.set(plain, this);
      near.observe(plain);
    }
  });
  return { load, data, define, source };
})();
