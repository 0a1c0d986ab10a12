// Light Markdown: fenced code, lists, `code` and **bold**. It builds elements
// and text nodes only, so whatever a model writes stays text.

import { el } from './dom.js';

/**
 * @param {string} text possibly still growing
 * @returns {DocumentFragment}
 */
export function markdown(text) {
  const out = document.createDocumentFragment();
  const lines = text.replaceAll('\r\n', '\n').split('\n');
  for (let i = 0; i < lines.length; ) {
    const fence = /^\s*```/.test(lines[i]);
    const bullet = listItem(lines[i]);
    if (fence) {
      const close = lines.findIndex((line, j) => j > i && /^\s*```\s*$/.test(line));
      const end = close < 0 ? lines.length : close;
      out.append(el('pre', { tabindex: 0 }, el('code', {}, lines.slice(i + 1, end).join('\n'))));
      i = end + 1;
    } else if (bullet) {
      const list = el(bullet.ordered ? 'ol' : 'ul', { start: bullet.ordered ? bullet.number : null });
      for (let item; i < lines.length && (item = listItem(lines[i])) && item.ordered === bullet.ordered; i++) {
        list.append(el('li', {}, ...inline(item.text)));
      }
      out.append(list);
    } else if (lines[i].trim() === '') {
      i++;
    } else {
      out.append(paragraph(lines, i));
      while (i < lines.length && isProse(lines[i])) i++;
    }
  }
  return out;
}

/** @param {string} line */
const isProse = (line) => line.trim() !== '' && !/^\s*```/.test(line) && !listItem(line);

/** A line is a solution step, so its end is kept. @param {string[]} lines @param {number} from */
function paragraph(lines, from) {
  const p = el('p');
  for (let i = from; i < lines.length && isProse(lines[i]); i++) {
    const result = /^\s*(?:\*\*)?Answer:/.test(lines[i]);
    p.append(el('span', { class: result ? 'line result' : 'line' }, ...inline(lines[i])), '\n');
  }
  return p;
}

/** @param {string} line */
function listItem(line) {
  const m = /^\s*(?:[-*+]|(\d{1,9})[.)])\s+(.*)$/.exec(line);
  return m && { ordered: m[1] !== undefined, number: m[1], text: m[2] };
}

/** @param {string} text @returns {(Node | string)[]} */
function inline(text) {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) => {
    if (part.length > 2 && part.startsWith('`') && part.endsWith('`')) return el('code', {}, part.slice(1, -1));
    if (part.length > 4 && part.startsWith('**') && part.endsWith('**')) return el('strong', {}, part.slice(2, -2));
    return part;
  });
}
