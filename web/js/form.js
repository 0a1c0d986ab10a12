// An answer in JSON as labelled fields: objects are lists of these, lists of equal objects tables.

import { el } from './dom.js';
import { t } from './words.js';

/** Values of an answer, and within one another, that are shown as fields; columns of a table. */
const most = 2000, deepest = 32, mostColumns = 8;

/** Shows an answer as fields in place of its text, which a button shows. @param {HTMLElement} text @param {string} answer @param {string} schema */
export function showForm(text, answer, schema) {
  let fields;
  try {
    const root = JSON.parse(schema);
    fields = new Fields(root).value(JSON.parse(answer, exactly), root, 0);
  } catch {
    return null; // cut off, or too much of it: it stays as it is
  }
  const button = el('button', { type: 'button', class: 'quiet', 'aria-pressed': 'false', on: { click: () => show(text.hidden) } }, 'JSON');
  const show = (/** @type {boolean} */ raw) => {
    text.hidden = !raw;
    fields.hidden = raw;
    button.setAttribute('aria-pressed', String(raw));
  };
  const form = el('div', { class: 'form' }, fields);
  text.before(form);
  form.append(text, el('div', { class: 'actions' }, button));
  show(false);
  return form;
}

/** Keeps numbers as they are written. @param {string} _ @param {any} value @param {{ source?: string }} [context] */
const exactly = (_, value, context) => (typeof value === 'number' ? context?.source ?? String(value) : value);

const plain = (/** @type {any} */ v) => v === null || typeof v !== 'object';
const own = (/** @type {any} */ v, /** @type {string} */ key) => (v && typeof v === 'object' && Object.hasOwn(v, key) ? v[key] : undefined);

class Fields {
  #root;
  #values = 0;

  /** @param {any} root the schema of all */
  constructor(root) {
    this.#root = root;
  }

  /** @param {any} value @param {any} schema @param {number} depth @returns {HTMLElement} */
  value(value, schema, depth) {
    if (++this.#values > most || depth > deepest) throw new Error('too much');
    schema = this.#meant(schema);
    if (plain(value)) return el('span', { class: 'value' }, value === null ? '–' : value === true ? t`yes` : value === false ? t`no` : value);
    if (!Object.keys(value).length) return el('span', { class: 'value' }, Array.isArray(value) ? t`none` : '–');
    if (!Array.isArray(value)) {
      return el('dl', {}, ...Object.entries(value).map(([key, v]) => el('div', { class: plain(v) ? '' : 'wide' }, this.#label('dt', key, schema), el('dd', {}, this.value(v, own(own(schema, 'properties'), key) ?? own(schema, 'additionalProperties'), depth + 1)))));
    }
    const items = this.#meant(own(schema, 'items'));
    const columns = [...new Set(value.flatMap((v) => (plain(v) || Array.isArray(v) ? [] : Object.keys(v))))];
    if (columns.length && columns.length <= mostColumns && value.every((v) => !plain(v) && !Array.isArray(v) && Object.values(v).every(plain))) return this.#table(value, columns, items, depth);
    return el('ol', {}, ...value.map((v) => el('li', {}, this.value(v, items, depth + 1))));
  }

  /** @param {any[]} rows @param {string[]} columns @param {any} schema @param {number} depth */
  #table(rows, columns, schema, depth) {
    return el('div', { class: 'table', tabindex: 0, role: 'region', 'aria-label': t`Table; scrolls` }, el('table', {}, el('thead', {}, el('tr', {}, ...columns.map((key) => this.#label('th', key, schema)))),
      el('tbody', {}, ...rows.map((row) => el('tr', {}, ...columns.map((key) => el('td', {}, Object.hasOwn(row, key) ? this.value(row[key], null, depth + 1) : '')))))));
  }

  /** A property's title, or else its name. @param {string} tag @param {string} key @param {any} schema */
  #label(tag, key, schema) {
    const { title, description } = this.#meant(own(own(schema, 'properties'), key)) ?? {};
    return el(tag, { title: typeof description === 'string' ? description : null, scope: tag === 'th' ? 'col' : null }, typeof title === 'string' && title.trim() ? title : key);
  }

  /** What a schema refers to. @param {any} schema @returns {any} */
  #meant(schema) {
    for (let hops = 0; hops < 16 && typeof own(schema, '$ref') === 'string'; hops++) {
      schema = schema.$ref.split('/').slice(1).reduce((/** @type {any} */ at, /** @type {string} */ key) => own(at, key.replaceAll('~1', '/').replaceAll('~0', '~')), this.#root);
    }
    return schema;
  }
}
