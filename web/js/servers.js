// The servers of tools in the settings: which are offered to models, and which of their tools.

import { toolServers } from './api.js';
import { el } from './dom.js';
import { nameOf, tools } from './mcp.js';
import { t } from './words.js';

/**
 * Shows the servers.
 * @param {HTMLElement} place @param {{ servers: string[], off: string[] }} chosen which it changes @param {() => void} changed
 */
export async function showServers(place, chosen, changed) {
  const names = await toolServers();
  place.hidden = !names.length;
  const shown = names.map((name) => {
    const tools = el('div', { 'aria-live': 'polite' });
    const box = check(name, chosen.servers.includes(name), (on) => {
      toggle(chosen.servers, name, on);
      changed();
      list(tools, on ? name : '', chosen, changed);
    });
    list(tools, chosen.servers.includes(name) ? name : '', chosen, changed);
    return el('div', { class: 'server' }, box, tools);
  });
  place.replaceChildren(el('legend', {}, t`Tools of servers (MCP)`), ...shown);
}

/** @param {HTMLElement} place @param {string} server empty: none @param {{ off: string[] }} chosen @param {() => void} changed */
async function list(place, server, chosen, changed) {
  if (!server) return place.replaceChildren();
  place.replaceChildren(el('p', { class: 'hint' }, t`Asking for its tools …`));
  try {
    const all = await tools(server);
    place.replaceChildren(el('details', {}, el('summary', {}, all.length === 1 ? t`1 tool` : t`${all.length} tools`), el('ul', {}, ...all.map((one) => el('li', {},
      check(one.title, !chosen.off.includes(nameOf(one)), (on) => { toggle(chosen.off, nameOf(one), !on); changed(); }), el('p', { title: one.description }, one.description))))));
  } catch (err) {
    place.replaceChildren(el('p', { class: 'fault' }, err instanceof Error ? err.message : String(err)));
  }
}

/** @param {string} words @param {boolean} on @param {(on: boolean) => void} change */
function check(words, on, change) {
  const box = /** @type {any} */ (el('input', { type: 'checkbox', on: { change: () => change(box.checked) } }));
  box.checked = on;
  return el('label', { class: 'check' }, box, words);
}

/** @param {string[]} list @param {string} name @param {boolean} there */
function toggle(list, name, there) {
  const at = list.indexOf(name);
  if (there && at < 0) list.push(name);
  else if (!there && at >= 0) list.splice(at, 1);
}
