// An answer as it arrives: the chunks of a stream added to a result.

import { ApiError } from './api.js';
import { objects, string } from './read.js';
import { absorb } from './search.js';
import { t } from './words.js';

/** @typedef {import('./exchange.js').Result} Result */

/** Characters of an answer, and of a thought. */
export const mostText = 1 << 21;
/** Calls of tools at once, and characters of the arguments of one. */
export const mostCalls = 32, mostArguments = 1 << 16;

/**
 * What adds the chunks of an answer to a result, from now on. A result with an answer is continued.
 * @param {Result} result @param {string} [judge] of a search's candidates
 */
export function receiver(result, judge) {
  const start = performance.now();
  const before = result.stats ?? { first: 0, thought: 0, total: 0, tokens: 0 };
  const continued = before.total > 0;
  const since = () => before.total + (performance.now() - start) / 1000;
  let { first, thought = 0 } = before;
  let thinking = 0; // since when
  let tokens = 0;
  /** @type {import('./exchange.js').Round | null} */
  let round = null;
  /** @param {any} chunk */
  return (chunk) => {
    if (!continued) result.search = absorb(result.search ?? null, chunk, judge);
    const choice = chunk.choices?.find((/** @type {any} */ c) => (c.index ?? 0) === 0);
    const text = choice?.delta?.content;
    const reasoning = choice?.delta?.reasoning_content;
    if (text) first ||= since();
    if (reasoning) thought = (before.thought ?? 0) + since() - (thinking ||= since());
    result.answer += text ?? '';
    result.reasoning = (result.reasoning ?? '') + (reasoning ?? '');
    if (result.answer.length > mostText || result.reasoning.length > mostText) throw new ApiError(200, { message: t`The answer is longer than the page keeps.` });
    for (const part of objects(choice?.delta?.tool_calls)) {
      if (!round) (result.rounds ??= []).push((round = { content: '', calls: [] }));
      gather(round.calls, part);
    }
    // What was written before calls is theirs, not the answer.
    if (round && choice?.finish_reason) [round.content, result.answer] = [result.answer, ''];
    result.finish = choice?.finish_reason ?? result.finish;
    tokens = spent(tokens, chunk, continued ? null : result.search ?? null, Boolean(text || reasoning));
    result.stats = { first, thought, total: since(), tokens: before.tokens + tokens };
  };
}

/** Adds a part of a call. @param {import('./exchange.js').Call[]} calls @param {any} part */
function gather(calls, part) {
  const index = part.index ?? 0;
  if (!Number.isInteger(index) || index < 0 || index > calls.length || index >= mostCalls) throw new ApiError(200, { message: t`The answer has a call of a tool at no place.` });
  const call = (calls[index] ??= { id: '', name: '', arguments: '' });
  call.id = (call.id || string(part.id)).slice(0, 256);
  call.name = (call.name + string(part.function?.name)).slice(0, 256);
  call.arguments += string(part.function?.arguments);
  if (call.arguments.length > mostArguments) throw new ApiError(200, { message: t`The arguments of ${call.name} are longer than the page keeps.` });
}

/**
 * The tokens generated so far, by all candidates: as the server reports; for a single answer, one a chunk of text
 * until the usage comes.
 * @param {number} before @param {any} chunk @param {import('./search.js').Search | null} search @param {boolean} text there is some
 */
function spent(before, chunk, search, text) {
  const used = (chunk.usage?.completion_tokens ?? 0) + (chunk.usage?.test_time_scaling?.cancelled_tokens ?? 0);
  if (used) return search ? Math.max(before, used) : used;
  return search ? Math.max(before, search.tokens ?? 0) : before + (text ? 1 : 0);
}

/** A candidate's text, its thought apart. @param {string} text */
export function parted(text) {
  const end = text.lastIndexOf('</think>');
  const [reasoning, answer] = end < 0 ? ['', text] : [text.slice(0, end), text.slice(end + '</think>'.length)];
  return { reasoning: reasoning.replaceAll(/<\/?think>/g, '').trim(), answer: answer.replaceAll('<think>', '').trim() };
}
