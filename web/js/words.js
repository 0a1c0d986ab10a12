// The page's words in the person's language. English is what the code says; other languages
// have a table each, which is loaded where it is wanted.

import { byId, el } from './dom.js';
import { keep, kept } from './store.js';

/** Languages by their tags, as each calls itself. */
const languages = { en: 'English', 'zh-Hans': '简体中文' };

/** The tag of the page's language: what is set, or else the browser's first that there is. */
export const language = [kept('language', ''), ...(globalThis.navigator?.languages ?? [])].map((tag) => (/^zh/i.test(tag) ? 'zh-Hans' : /^en/i.test(tag) ? 'en' : '')).find(Boolean) ?? 'en';

/** @type {any} */
const loaded = language === 'en' ? {} : await import('./chinese.js').catch(() => ({}));
/** @type {Record<string, string>} */
const table = loaded.words ?? {};

/**
 * A text in the page's language. The table has it as English writes it, with {} for each value; its
 * translation has these in the same order, or numbered from 1.
 * @param {TemplateStringsArray} parts @param {...unknown} values
 * @returns {string}
 */
export function t(parts, ...values) {
  let at = 0;
  return (table[parts.join('{}')] ?? parts.join('{}')).replace(/\{(\d?)\}/g, (_, n) => String(values[n ? n - 1 : at++]));
}

/** Puts the texts of the page's own markup into its language, and lets the person choose another. */
export function translate() {
  const menu = byId('language');
  menu.append(...Object.entries(languages).map(([lang, name]) => el('option', { value: lang, lang }, name)));
  menu.value = kept('language', '');
  menu.addEventListener('change', () => { // the conversation is kept, and shown again
    keep('language', menu.value || null);
    location.reload();
  });
  document.documentElement.lang = language;
  if (language === 'en') return;
  const said = (/** @type {string} */ text) => table[text.trim().replace(/\s+/g, ' ')];
  const walker = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
  for (let node = /** @type {any} */ (walker.nextNode()); node; node = walker.nextNode()) {
    if (node.nodeType === Node.TEXT_NODE) node.data = said(node.data) ?? node.data;
    else for (const name of ['aria-label', 'title', 'placeholder', 'data-name', 'content']) if (said(node.getAttribute(name) ?? '')) node.setAttribute(name, said(node.getAttribute(name)));
  }
}
