// The settings: model, sampling and search. The menus offer what the chosen model can
// do.

import { byId, el } from './dom.js';
import { check, stopsOf } from './fields.js';
import { methods } from './methods.js';
import { openNamed } from './named.js';
import { anyModel } from './offer.js';
import { showPanel } from './panels.js';
import { inWords, parse, stepped, wordsOf } from './plans.js';
import { readSchema } from './schema.js';
import { keep, kept, recall, remember } from './store.js';
import * as toolset from './toolset.js';
import { placeholder } from './welcome.js';
import { t } from './words.js';

/** @typedef {import('./offer.js').Offer} Offer */

const widths = [2, 4, 8];
/** Tokens of an answer, where neither the person nor the server sets a limit: Continue goes on. */
const mostTokens = 1024;
/** What ends an answer that repeats itself: a pattern of so many tokens, so often. */
const loops = { min_pattern_size: 8, max_pattern_size: 64, min_count: 8 };
/** Verifiers that read what the model itself was sure of. */
const certain = ['logprob', 'self_certainty'];
/** What a search reports, so that it can be drawn. */
const include = ['candidates', 'steps', 'tree', 'partial'];
/** Begins the menu's value of a preset. */
const preset = '+';

/** @type {HTMLSelectElement} */ const method = byId('method');
/** @type {HTMLSelectElement} */ const n = byId('n');
/** @type {HTMLSelectElement} */ const width = byId('width');
/** @type {HTMLSelectElement} */ const model = byId('model');
/** @type {HTMLFormElement} */ const form = byId('settings-form');
/** @type {HTMLSelectElement} */ const verifier = byId('verifier');

/** The latest settings. One that a model does not offer applies again to the next model that does. @type {any} */
let saved = {};
/** @type {Offer[]} */
let offered = [];
/** The model that is chosen now. */
export const current = () => offered.find((o) => o.id === model.value) ?? anyModel;
/** There is a choice of models. */
export const several = () => offered.length > 1;

/** Fields of sampling, which presets of a person's own hold. */
const sampling = ['temperature', 'top_p', 'top_k', 'min_p', 'max_tokens', 'seed', 'stop', 'thinking'];
/** What is said of models that are not in memory. */
const states = { loaded: '', loading: t` · loading`, unloaded: t` · on disk`, failed: t` · failed` };

/**
 * Fills the form with what was set before: in this tab, or else on this device.
 * @param {() => void} switched is called when another model is chosen
 */
export function openSettings(switched) {
  saved = recall('settings', null) ?? kept('settings', {});
  n.append(...[2, 4, 8, 16, 32, 64].map((v) => el('option', { value: v }, v)));
  width.append(...widths.map((v) => el('option', { value: v }, v)));
  n.value = saved.n ?? '8';
  width.value = saved.width ?? '4';
  for (const field of fields()) field.value = saved[field.name] ?? '';
  for (const part of [method, n, width, form]) part.addEventListener('change', change);
  model.addEventListener('change', () => {
    saved.model = model.value;
    refreshMenus();
    store();
    switched();
  });
  form.addEventListener('submit', (event) => event.preventDefault());
  form.addEventListener('input', faulty);
  openNamed('prompts', t`Saved prompts`, ['system'], read, fill);
  openNamed('samplings', t`Saved sampling`, sampling, read, fill);
  refreshMenus();
}

/** @returns {import('./fields.js').Field[]} */
const fields = () => [...form.querySelectorAll('[name]')].map((f) => /** @type {any} */ (f));

/** What is set, by the names of fields. */
const read = () => Object.fromEntries(fields().map((f) => [f.name, f.value]));

/** @param {Record<string, string>} values */
function fill(values) {
  for (const field of fields()) if (field.name in values) field.value = values[field.name];
  change();
}

/** Shows what is wrong with the fields that are offered. @returns {import('./fields.js').Field[]} */
function faulty() {
  return fields().filter((f) => {
    const greedy = f.name === 'temperature' && f.value !== '' && Number(f.value) === 0 && !['', 'none'].includes(method.value);
    const calls = f.name === 'schema' && f.value.trim() && (form.builtin.value || form.tools.value.trim());
    return !f.closest('[hidden]') && check(f, greedy ? t`A search needs candidates that differ: a temperature above 0.` : calls ? t`An answer that is held to a schema can call no tools.` : '');
  });
}

/** Nothing that is set would be refused; otherwise the settings are opened at what would be. */
export function valid() {
  const [first] = faulty();
  if (!first) return true;
  showPanel('settings');
  byId('advanced').open ||= Boolean(first.closest('#advanced'));
  first.focus();
  return false;
}

function store() {
  remember('settings', saved);
  keep('settings', saved);
}

function change() {
  adjust();
  faulty();
  saved = { ...read(), method: method.value, n: n.value, width: width.value, verifier: verifier.value, model: model.value };
  store();
}

/**
 * Fills the model menu.
 * @param {Offer[]} list
 */
export function showModels(list) {
  const same = list.length === offered.length && list.every((o, i) => o.id === offered[i].id);
  offered = list;
  if (!same) model.replaceChildren(...offered.map((o) => el('option', { value: o.id })));
  // A menu that is open stays so.
  offered.forEach((o, i) => { model.options[i].textContent = o.id + states[o.state]; });
  if (same) return refreshMenus();
  if (offered.some((o) => o.id === saved.model)) model.value = saved.model;
  model.disabled = offered.length === 0;
  /** @type {any} */ (model.parentElement).hidden = model.disabled;
  refreshMenus();
}

/** Offers what the chosen model can do, and keeps the settings as far as possible. */
function refreshMenus() {
  const { scaling, methods: can, presets, verifiers, sampling: others, thinks, extended } = current();
  const names = [...(scaling ? [''] : []), 'none', ...can];
  method.replaceChildren(...names.map((value) => el('option', { value }, value ? methods[value].name : `${methods[''].name}: ${wordsOf(scaling)}`)));
  if (presets.length) {
    method.append(el('optgroup', { label: t`Presets` }, ...presets.map((name) => el('option', { value: preset + name }, wordsOf(name)))));
  }
  pick(method, saved.method, names[0]);
  verifier.replaceChildren(el('option', { value: '' }, t`the default`), ...verifiers.map((name) => el('option', { value: name }, name)));
  pick(verifier, saved.verifier, '');
  byId('verifier-label').hidden = verifiers.length === 0;
  byId('thinking-label').hidden = !thinks;
  for (const name of ['top_k', 'min_p']) byId(`${name}-label`).hidden = !extended;
  form.top_p.placeholder = String(others.top_p ?? 1);
  form.top_k.placeholder = others.top_k ? String(others.top_k) : t`all`;
  form.min_p.placeholder = String(others.min_p ?? 0);
  byId('question').placeholder = placeholder(current());
  adjust();
}

/** @param {HTMLSelectElement} menu @param {string | undefined} wanted @param {string} otherwise */
function pick(menu, wanted, otherwise) {
  menu.value = [...menu.options].some((o) => o.value === wanted) ? String(wanted) : otherwise;
}

/**
 * Sets the method of the next question, as far as the model offers it.
 * @param {{ method?: string, n?: number, width?: number }} wanted
 */
export function choose(wanted) {
  if (wanted.method === undefined || ![...method.options].some((o) => o.value === wanted.method)) return;
  method.value = wanted.method;
  for (const [menu, value] of /** @type {[HTMLSelectElement, number | undefined][]} */ ([[n, wanted.n], [width, wanted.width]])) {
    if (!value) continue;
    if (![...menu.options].some((o) => o.value === String(value))) menu.append(el('option', { value }, value));
    menu.value = String(value);
  }
  change();
}

/** Shows what the method needs, and allows no width that n is not a multiple of. */
function adjust() {
  const known = methods[method.value];
  const { demo, temperature, maxTokens } = current();
  const single = method.value === 'none';
  form.temperature.placeholder = String(single ? (demo ? 0 : temperature ?? t`as the model does`) : 0.8);
  form.max_tokens.placeholder = (maxTokens ?? bound(method.value))?.toLocaleString('en') ?? t`as the model allows`;
  byId('n-label').hidden = !known || ['', 'none'].includes(method.value);
  byId('width-label').hidden = !stepped(method.value);
  byId('method-hint').textContent = known?.hint ?? '';
  byId('show-plan').classList.toggle('set', !single);
  for (const option of width.options) option.disabled = Number(option.value) > Number(n.value);
  if (Number(width.value) > Number(n.value)) width.value = n.value;
}

/**
 * A way to find an answer, as the menus have it.
 * @typedef {{ method: string, n: number, width: number, verifier: string, likeliest?: boolean }} Way `likeliest`: at temperature 0
 */

/** The way that is set. @returns {Way} */
export const way = () => ({ method: method.value, n: Number(n.value), width: Number(width.value), verifier: verifier.value });

/** A single answer. @type {Way} */
export const singly = { method: 'none', n: 1, width: 1, verifier: '', likeliest: true };

/** The chosen model offers a way. @param {Way} way */
export const offersWay = (way) => [...method.options].some((o) => o.value === way.method);

/** What a way is called. @param {Way} way */
export const nameOf = ({ method, n, width }) => (method.startsWith(preset) ? wordsOf(method.slice(preset.length)) : inWords({ method, n, width }));

/** What judges the candidates of a way, as far as the page knows: a verifier, or how sure the model was. @param {Way} way */
export function judge({ method, verifier }) {
  const [first = 'self'] = current().verifiers;
  return verifier || parse(method.slice(preset.length))?.more.verifier || (['self', ...certain].includes(first) ? 'logprob' : first);
}

/** The page's limit of tokens; null: the server, a preset or a small context sets one. @param {string} method */
function bound(method) {
  const { maxTokens, context } = current();
  const theirs = maxTokens !== null || context !== null && context <= 2 * mostTokens || method === '' || method.startsWith(preset);
  return theirs ? null : mostTokens;
}

/**
 * The settings as fields of a request that is answered in a way; empty ones are left out, for the server's defaults.
 * @param {Way} way
 */
export function plan({ method, n, width, verifier, likeliest }) {
  const { id, demo, extended } = current();
  const values = Object.fromEntries(fields().filter((f) => !f.closest('[hidden]')).map((f) => [f.name, f.value.trim()]));
  /** @type {Omit<import('./api.js').ChatRequest, 'messages'> & { system: string }} */
  const set = { model: id, system: values.system, truncation: 'auto' };
  for (const name of /** @type {('temperature' | 'top_p' | 'top_k' | 'min_p' | 'max_tokens' | 'seed')[]} */ (sampling.slice(0, 6))) {
    if (values[name]) set[name] = Number(values[name]);
  }
  set.max_tokens ??= bound(method) ?? undefined;
  if (extended) set.repetition_detection = loops;
  if (values.stop) set.stop = stopsOf(form.stop.value);
  if (values.thinking) set.chat_template_kwargs = { enable_thinking: values.thinking === 'on' };
  const tools = [...(values.builtin ? toolset.builtIn : []), ...toolset.read(values.tools)];
  if (tools.length) set.tools = tools;
  const schema = readSchema(values.schema);
  if (schema) set.response_format = { type: 'json_schema', json_schema: { name: 'answer', schema } };
  if (likeliest) set.temperature = 0;
  if (method === 'none') {
    set.test_time_scaling = { method: 'none' }; // whatever the server's default is
    if (demo) set.temperature ??= 0; // for arithmetic the likeliest answer is the best
  } else if (method.startsWith(preset)) {
    set.model += method;
    set.test_time_scaling = { include };
  } else if (method !== '') {
    set.test_time_scaling = { method, n, include };
    if (stepped(method)) set.test_time_scaling.width = width;
    if (verifier) set.test_time_scaling.verifier = verifier;
  } else if (set.temperature !== 0) { // else the default does not apply, and the answer is plain
    set.test_time_scaling = { include };
  }
  return set;
}
