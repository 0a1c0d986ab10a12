// Answers a model's calls of tools: each once the person has allowed it, or by the person's hand.

import { ApiError } from './api.js';
import { calculate } from './calculator.js';
import { builtIn } from './toolset.js';
import { t } from './words.js';

/**
 * @typedef {import('./exchange.js').Call} Call
 * @typedef {{ allow: boolean, always?: boolean, result?: string }} Decision
 */

/** Rounds of calls before an answer. */
const mostRounds = 16;
/** What waits for the person. @type {WeakMap<Call, (decision: Decision) => void>} */
const waiting = new WeakMap();

/** The person decides. @param {Call} call @param {Decision} decision */
export const decide = (call, decision) => waiting.get(call)?.(decision);
/** The call still waits for the person. @param {Call} call */
export const waits = (call) => waiting.has(call);

/** Calls of this name are answered by the page. @param {string} name */
export const answersItself = (name) => builtIn.some(({ function: f }) => f.name === name);

/**
 * Answers the calls of an exchange and asks on, until an answer comes without.
 * @param {import('./exchange.js').Exchange} exchange @param {import('./toolset.js').Tool[]} tools that were offered
 * @param {Set<string>} allowed names that need no question @param {AbortSignal} signal @param {() => void} changed @param {() => Promise<void>} ask
 */
export async function useTools({ rounds = [] }, tools, allowed, signal, changed, ask) {
  const offered = tools.map((tool) => tool.function.name);
  for (let n = 0; n !== rounds.length;) {
    if (rounds.length > mostRounds) throw new ApiError(200, { message: t`The model has called tools in ${mostRounds} rounds, and not answered.` });
    n = rounds.length;
    await answerCalls(rounds[n - 1].calls, offered, allowed, signal, changed);
    await ask();
  }
}

/**
 * Answers the calls of a round, one after the other.
 * @param {Call[]} calls @param {string[]} offered names of tools @param {Set<string>} allowed names that need no question
 * @param {AbortSignal} signal @param {() => void} changed
 */
async function answerCalls(calls, offered, allowed, signal, changed) {
  for (const call of calls) {
    if (!offered.includes(call.name)) call.result = `There is no tool ${call.name}.`;
    else if (allowed.has(call.name)) call.result = run(call);
    else {
      const decision = await asked(call, signal, changed);
      if (decision.always) allowed.add(call.name);
      call.refused = !decision.allow;
      call.result = !decision.allow ? 'The person has refused this call.' : decision.result ?? run(call);
    }
    changed();
  }
}

/** @param {Call} call @param {AbortSignal} signal @param {() => void} changed @returns {Promise<Decision>} */
function asked(call, signal, changed) {
  return new Promise((resolve, reject) => {
    const stop = () => { waiting.delete(call); reject(new ApiError(0, { message: t`Stopped.` })); };
    if (signal.aborted) return stop();
    signal.addEventListener('abort', stop, { once: true });
    waiting.set(call, (decision) => {
      signal.removeEventListener('abort', stop);
      waiting.delete(call);
      resolve(decision);
    });
    changed();
  });
}

/** Answers a call of one of the page's own tools. @param {Call} call @returns {string} */
function run(call) {
  try {
    const given = JSON.parse(call.arguments || '{}');
    return call.name === 'calculator' ? String(calculate(String(given?.expression ?? ''))) : today();
  } catch (err) {
    call.failed = true;
    return `Error: ${err instanceof Error ? err.message : err}`; // for the model, which can correct it
  }
}

function today() {
  const now = new Date();
  return JSON.stringify({ date: now.toLocaleDateString('en-CA'), weekday: now.toLocaleDateString('en', { weekday: 'long' }), time: now.toTimeString().slice(0, 8), zone: Intl.DateTimeFormat().resolvedOptions().timeZone });
}
