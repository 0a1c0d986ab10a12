// Blocks of code: language, colours, a button that copies.

import { copy } from './clipboard.js';
import { el } from './dom.js';
import { keyed } from './morph.js';
import { t } from './words.js';

/** More characters than this are not coloured. */
const most = 50_000;

/** Other names of languages, and those of their files. @type {Record<string, string>} */
const aliases = { 'c++': 'cpp', cc: 'cpp', cs: 'csharp', 'c#': 'csharp', golang: 'go', hs: 'haskell', html: 'xml', svg: 'xml', toml: 'ini', js: 'javascript',
  jsx: 'javascript', mjs: 'javascript', jsonc: 'json', jl: 'julia', kt: 'kotlin', tex: 'latex', make: 'makefile', md: 'markdown', pl: 'perl', py: 'python',
  python3: 'python', rb: 'ruby', rs: 'rust', sh: 'bash', shell: 'bash', zsh: 'bash', console: 'bash', ts: 'typescript', tsx: 'typescript', yml: 'yaml', patch: 'diff', h: 'c' };
const languages = new Set(['bash', 'c', 'cpp', 'csharp', 'css', 'diff', 'dockerfile', 'go', 'haskell', 'ini', 'java', 'javascript', 'json', 'julia', 'kotlin',
  'latex', 'lua', 'makefile', 'markdown', 'perl', 'php', 'python', 'r', 'ruby', 'rust', 'sql', 'swift', 'typescript', 'xml', 'yaml']);

/**
 * @param {string} text
 * @param {string} info what stands behind the fence
 * @param {boolean} closed no more will come
 */
export function codeBlock(text, info, closed) {
  const name = (/^[^\s{]*/.exec(info)?.[0] ?? '').slice(0, 30);
  const button = el('button', { type: 'button', class: 'quiet copy', on: {
    click: async () => {
      const code = /** @type {HTMLElement} */ (button.closest('.code')?.querySelector('code'));
      const done = await copy(code.textContent ?? '');
      if (!done) getSelection()?.selectAllChildren(code);
      button.textContent = done ? t`Copied` : t`Press Ctrl+C`;
      button.addEventListener('blur', () => { button.textContent = t`Copy`; }, { once: true });
    },
  } }, t`Copy`);
  const figure = el('figure', { class: 'code' }, el('figcaption', {}, el('span', {}, name || 'text'), button), el('pre', { tabindex: 0 }, el('code', {}, text)));
  if (!closed) return figure;
  const language = aliases[name.toLowerCase()] ?? name.toLowerCase();
  return keyed(figure, `${name}\n${text}`, (shown) => {
    if (languages.has(language) && text.length <= most) colour(/** @type {HTMLElement} */ (shown.querySelector('code')), text, language);
  });
}

/** @type {Promise<any> | null} */
let loading = null;
const load = () => (loading ??= import('../libraries/highlight/core.min.js').then((module) => module.default));

/** @param {HTMLElement} code @param {string} text @param {string} language */
async function colour(code, text, language) {
  try {
    const [hljs, grammar] = await Promise.all([load(), import(`../libraries/highlight/languages/${language}.min.js`)]);
    if (!hljs.getLanguage(language)) hljs.registerLanguage(language, grammar.default);
    // highlight.js's tree, of which its own HTML is made; the page makes elements.
    const { root } = hljs.highlight(text, { language, ignoreIllegals: true })._emitter;
    unselected(code, () => code.replaceChildren(...pieces(root)));
  } catch { /* the server cannot be reached: the code stays as it is */ }
}

/** @param {any} node @returns {(Node | string)[]} */
const pieces = (node) => node.children.map((/** @type {any} */ child) => (typeof child === 'string' ? child
  : el('span', { class: child.scope && `hl-${child.scope.split('.')[0]}` }, ...pieces(child))));

/** Runs work once nothing in an element is selected. @param {HTMLElement} element @param {() => void} work */
function unselected(element, work) {
  const selection = getSelection();
  const range = selection?.rangeCount ? selection.getRangeAt(0) : null; // asked of the selection itself, this needs a layout
  if (!range || range.collapsed || !range.intersectsNode(element)) work();
  else document.addEventListener('selectionchange', () => unselected(element, work), { once: true });
}
