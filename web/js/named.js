// Settings that a person has given a name: they are kept on this device.

import { byId, el } from './dom.js';
import { keep, kept } from './store.js';
import { record, text } from './shape.js';
import { t } from './words.js';

/** How many there are, and characters of a name and of a value. */
const most = { names: 50, name: 60, value: 100_000 };

/** @typedef {Record<string, string>} Values by the names of fields */

/**
 * Makes a menu of named settings, with what saves and deletes them.
 * @param {string} id of the element that it fills, and the name that they are kept by
 * @param {string} label @param {string[]} fields
 * @param {() => Values} read what is set @param {(values: Values) => void} set
 */
export function openNamed(id, label, fields, read, set) {
  const shape = record(Object.fromEntries(fields.map((f) => [`${f}?`, text(most.value)])));
  /** @type {Map<string, Values>} */
  let named = load();
  const menu = /** @type {any} */ (el('select'));
  const field = /** @type {any} */ (el('input', { maxlength: most.name, 'aria-label': t`Name, to keep these: ${label}`, placeholder: t`name` }));
  const button = (/** @type {string} */ words, /** @type {() => void} */ click) => /** @type {any} */ (el('button', { type: 'button', class: 'quiet', on: { click } }, words));
  const remove = button(t`Delete`, () => { named.delete(menu.value); store(''); });
  const save = button(t`Save`, () => {
    const name = field.value.trim() || menu.value;
    if (!name) return field.focus();
    const values = read();
    named.set(name, Object.fromEntries(fields.map((f) => [f, values[f] ?? ''])));
    field.value = '';
    store(name);
  });

  /** Of another version, or of another page: what does not fit is left out. */
  function load() {
    /** @type {any[]} */
    const list = kept(id, []);
    const fits = Array.isArray(list) ? list.slice(0, most.names).flatMap((pair) => {
      try {
        return [/** @type {[string, Values]} */ ([text(most.name)(pair?.[0], 'name'), shape(pair?.[1], 'values')])];
      } catch {
        return [];
      }
    }) : [];
    return new Map(fits);
  }

  /** @param {string} chosen */
  function store(chosen) {
    named = new Map([...named].slice(-most.names));
    keep(id, named.size ? [...named] : null);
    show(chosen);
  }

  /** @param {string} chosen */
  function show(chosen) {
    menu.replaceChildren(el('option', { value: '' }, named.size ? t`none` : t`none yet`), ...[...named.keys()].map((name) => el('option', { value: name }, name)));
    menu.value = chosen;
    remove.disabled = !menu.value;
  }

  menu.addEventListener('change', () => {
    const values = named.get(menu.value);
    show(menu.value);
    if (values) set(values);
  });
  field.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== 'Enter') return;
    event.preventDefault();
    save.click();
  });
  byId(id).append(el('label', {}, label, menu), el('div', { class: 'row' }, field, save, remove));
  show('');
}
