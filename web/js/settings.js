// What the person has set: the model, the sampling, and how to search.

import { byId, el } from './dom.js';
import { recall, remember } from './store.js';

/** @type {Record<string, { name: string, hint: string }>} */
const methods = {
  single: { name: 'Single answer', hint: 'One answer, token by token.' },
  self_consistency: { name: 'Self-consistency', hint: 'n answers; the one that most of them give.' },
  best_of_n: { name: 'Best of n', hint: 'n answers; the one a verifier scores best.' },
  beam_search: { name: 'Beam search', hint: 'n beginnings; only the best-scored go on, each in several ways.' },
  dvts: { name: 'DVTS', hint: 'n/width searches that do not compete with each other.' },
  auto: { name: 'Auto', hint: 'A few answers; a search when they disagree.' },
};
const widths = [2, 4, 8];

/** @type {HTMLSelectElement} */ const method = byId('method');
/** @type {HTMLSelectElement} */ const n = byId('n');
/** @type {HTMLSelectElement} */ const width = byId('width');
/** @type {HTMLSelectElement} */ const model = byId('model');
/** @type {HTMLFormElement} */ const form = byId('settings-form');

/** Fills the form with what was set before in this tab. */
export function openSettings() {
  const kept = recall('settings', {});
  method.append(...Object.entries(methods).map(([value, m]) => el('option', { value }, m.name)));
  n.append(...[2, 4, 8, 16, 32, 64].map((v) => el('option', { value: v }, v)));
  width.append(...widths.map((v) => el('option', { value: v }, v)));
  method.value = kept.method in methods ? kept.method : 'single';
  n.value = kept.n ?? '8';
  width.value = kept.width ?? '4';
  for (const field of fields()) field.value = kept[field.name] ?? '';
  for (const part of [method, n, width, model, form]) part.addEventListener('change', change);
  form.addEventListener('submit', (event) => event.preventDefault());
  agree();
}

/** @returns {(HTMLInputElement | HTMLTextAreaElement)[]} */
const fields = () => [...form.querySelectorAll('input, textarea')].map((f) => /** @type {any} */ (f));

function change() {
  agree();
  const kept = Object.fromEntries(fields().map((f) => [f.name, f.value]));
  remember('settings', { ...kept, method: method.value, n: n.value, width: width.value, model: model.value });
}

/** Shows what the method needs, and allows no width that n is not a multiple of. */
function agree() {
  const tree = ['beam_search', 'dvts', 'auto'].includes(method.value);
  byId('n-label').hidden = method.value === 'single';
  byId('width-label').hidden = !tree;
  byId('method-hint').textContent = methods[method.value].hint;
  for (const option of width.options) option.disabled = Number(option.value) > Number(n.value);
  if (Number(width.value) > Number(n.value)) width.value = n.value;
}

/** @param {import('./api.js').ModelCard[]} cards */
export function showModels(cards) {
  const wanted = model.value || recall('settings', {}).model;
  // Judges do not chat, and a name with a preset is a method: there is a menu for those.
  const menu = cards.filter((c) => c.task !== 'reward' && !c.id.startsWith(`${c.root}+`));
  model.replaceChildren(...menu.map((c) => el('option', { value: c.id }, c.id)));
  if (menu.some((c) => c.id === wanted)) model.value = wanted;
  model.disabled = menu.length === 0;
}

/** What is set, as a request's fields; those left empty are left out, for the server's defaults. */
export function plan() {
  const values = Object.fromEntries(fields().map((f) => [f.name, f.value.trim()]));
  const single = method.value === 'single';
  /** @type {Omit<import('./api.js').ChatRequest, 'messages'> & { system: string }} */
  const set = { model: model.disabled ? 'default' : model.value, system: values.system };
  if (values.temperature !== '') set.temperature = Number(values.temperature);
  else if (single) set.temperature = 0; // the likeliest answer; a search has its own default
  if (values.max_tokens !== '') set.max_tokens = Number(values.max_tokens);
  if (values.seed !== '') set.seed = Number(values.seed);
  if (single) {
    set.test_time_scaling = { method: 'none' }; // whatever the server's default is
  } else {
    set.test_time_scaling = { method: method.value, n: Number(n.value), include: ['candidates', 'steps', 'tree'] };
    if (!byId('width-label').hidden) set.test_time_scaling.width = Number(width.value);
  }
  return set;
}
