// What each model of the server offers, from its card in /v1/models. A card without
// that (an older server's) offers what every model can do.

import { methods } from './methods.js';
import { number, string, strings } from './read.js';

/**
 * @typedef {object} Offer
 * @property {string} id the name that requests use
 * @property {boolean} demo an embedded model, for arithmetic stories
 * @property {string[]} methods of test-time scaling, without `none`
 * @property {string[]} verifiers that can score its answers
 * @property {string[]} presets whose name may follow the model's and a "+"
 * @property {number | null} context tokens that prompt and answer may have together
 * @property {number | null} maxTurns questions of a conversation that it reads
 * @property {number | null} temperature the server's default
 * @property {Record<string, number | null>} sampling further defaults of the server
 * @property {number | null} maxTokens the server's default
 * @property {boolean} thinks its answers may begin with thinking, which can be switched
 * @property {boolean} extended it knows the sampling fields that OpenAI's API has not
 * @property {'loaded' | 'loading' | 'unloaded' | 'failed'} state
 * @property {string} scaling the server's default search, in its written form; empty: none
 */

/** The methods this page knows, in the order of its menu. */
const known = Object.keys(methods).filter((name) => name && name !== 'none');
const plain = ['self_consistency', 'best_of_n', 'auto'];

/**
 * The models that write answers. Models that judge or read are left out, and names with
 * a preset, which are no models.
 * @param {import('./api.js').ModelCard[]} cards
 * @returns {Offer[]}
 */
export function offers(cards) {
  return cards.filter((c) => typeof c.id === 'string' && (c.task ?? 'generate') === 'generate' && !c.id.startsWith(`${c.root}+`)).map(offer);
}

/** @param {import('./api.js').ModelCard} card @returns {Offer} */
function offer(card) {
  const says = card.lutra ?? {};
  const can = Array.isArray(says.methods) ? says.methods : plain;
  return {
    id: card.id,
    demo: says.demo === true,
    methods: known.filter((m) => can.includes(m)),
    verifiers: strings(says.verifiers),
    presets: strings(says.presets),
    context: number(card.max_model_len),
    maxTurns: number(says.max_turns),
    temperature: number(says.defaults?.temperature),
    sampling: Object.fromEntries(['top_p', 'top_k', 'min_p'].map((name) => [name, number(says.defaults?.[name])])),
    maxTokens: number(says.defaults?.max_tokens),
    thinks: says.thinking === true,
    extended: Boolean(card.lutra),
    state: card.status?.failed === true ? 'failed' : ['loading', 'unloaded'].includes(card.status?.value ?? '') ? /** @type {any} */ (card.status?.value) : 'loaded',
    scaling: says.defaults?.scaling === 'none' ? '' : string(says.defaults?.scaling),
  };
}

/** The model that answers while none is known. @type {Offer} */
export const anyModel = {
  id: 'default', demo: false, methods: plain, verifiers: [], presets: [], context: null, maxTurns: null, temperature: null, sampling: {}, maxTokens: null, scaling: '', thinks: false, extended: true, state: 'loaded',
};
