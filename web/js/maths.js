// Formulas as MathML, by Temml, which is loaded when there is one.

import { el } from './dom.js';
import { keyed } from './morph.js';

/** @type {Promise<any> | null} */
let loading = null;

/** Temml, and its rules of style. */
function load() {
  return (loading ??= import('../libraries/temml/temml.min.js').then((module) => {
    document.head.append(el('link', { rel: 'stylesheet', href: new URL('../libraries/temml/Temml-Local.css', import.meta.url).href }));
    return module.default;
  }));
}

/**
 * A formula: its source until it is drawn, and where that is not TeX.
 * @param {string} tex
 * @param {boolean} display in a line of its own
 */
export function formula(tex, display) {
  return keyed(el('span', { class: display ? 'maths display' : 'maths', tabindex: display ? 0 : null }, tex), `${display}${tex}`, (shown) => draw(shown, tex, display));
}

/** @param {HTMLElement} shown @param {string} tex @param {boolean} displayMode */
async function draw(shown, tex, displayMode) {
  try {
    const temml = await load();
    const drawn = document.createElement('span');
    temml.render(tex, drawn, { displayMode, throwOnError: true, trust: false, maxSize: [40, 40], maxExpand: 300 });
    clean(drawn);
    shown.replaceChildren(...drawn.childNodes);
  } catch {
    shown.classList.add('source'); // no TeX, or the server cannot be reached
  }
}

const mathML = 'http://www.w3.org/1998/Math/MathML';

/** Leaves MathML alone, without names or addresses. Temml makes nothing else of what it is not told to trust. @param {HTMLElement} root */
function clean(root) {
  for (const node of root.querySelectorAll('*')) {
    if (node.namespaceURI !== mathML) node.replaceWith(node.textContent ?? '');
    for (const { name } of [...node.attributes]) if (/^(?:on|id$|name$)|href|src|action/i.test(name)) node.removeAttribute(name);
  }
}
