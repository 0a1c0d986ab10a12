// The fields of the settings: what they say, and what is wrong with it. Their bounds are those
// of the server, so that it refuses nothing.

import { el } from './dom.js';
import { readSchema } from './schema.js';
import { read } from './toolset.js';
import { t } from './words.js';

/** @typedef {HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement} Field */

/** Stop strings of a request, and bytes of one. */
const stops = { most: 16, bytes: 1024 };

/** The stop strings of a field: a line each, where \n is a line's end. @param {string} text */
export const stopsOf = (text) => text.split('\n').filter((line) => line !== '').map((line) => line.replaceAll('\\n', '\n'));

/** What is wrong with a field, in words; empty: nothing. @param {Field} field */
function fault(field) {
  if (field.name === 'stop') {
    const list = stopsOf(field.value);
    if (list.length > stops.most) return t`There may be ${stops.most} stop strings.`;
    return list.some((s) => new TextEncoder().encode(s).length > stops.bytes) ? t`A stop string may have ${stops.bytes.toLocaleString('en')} bytes.` : '';
  }
  if (field.name === 'tools' || field.name === 'schema') {
    try {
      (field.name === 'tools' ? read : readSchema)(field.value);
      return '';
    } catch (err) {
      return err instanceof Error ? err.message : String(err);
    }
  }
  const { validity } = field;
  const { min, max } = /** @type {HTMLInputElement} */ (field);
  const name = field.dataset.name ?? field.name;
  if (validity.badInput) return t`${name} is a number.`;
  if (validity.stepMismatch) return t`${name} is a whole number.`;
  if (validity.rangeUnderflow || validity.rangeOverflow) return Number(max) < 1e6 ? t`${name} is a number from ${min} to ${max}.` : validity.rangeOverflow ? t`${name} is at most ${max}.` : t`${name} is at least ${min}.`;
  return '';
}

/** Shows what is wrong with a field beside it. @param {Field} field @param {string} [more] wrong with it for another reason */
export function check(field, more = '') {
  const words = fault(field) || more;
  const id = `${field.name}-fault`;
  const shown = document.getElementById(id);
  field.setAttribute('aria-invalid', String(words !== ''));
  if (!words) shown?.remove();
  else if (shown) shown.textContent = words;
  else field.after(el('span', { class: 'fault', id, role: 'alert' }, words));
  return words;
}
