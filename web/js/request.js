// What is sent for a question: the conversation up to it, as far as it is sent.

/** @typedef {import('./exchange.js').Exchange} Exchange */
/** @typedef {Omit<import('./api.js').ChatRequest, 'messages'> & { system: string }} Plan what the person has set */
/**
 * The request, the indexes of the exchanges in the path that have been answered, and how many of these are left out.
 * @typedef {{ request: import('./api.js').ChatRequest, answered: number[], left: number }} Asked
 */

/** How many earlier exchanges are sent at most. */
const most = 100;

/**
 * The request for an answer.
 * @param {Exchange[]} path that ends with the question
 * @param {Plan} plan
 * @returns {Asked}
 */
export function question(path, { system, ...set }) {
  /** @type {import('./api.js').ChatMessage[]} */
  const messages = system ? [{ role: 'system', content: system }] : [];
  const last = path.length - 1;
  const answered = [...path.keys()].filter((i) => i < last && path[i].answer);
  const left = Math.max(0, answered.length - most);
  for (const i of answered.slice(left)) {
    messages.push({ role: 'user', content: path[i].question }, ...called(path[i]), { role: 'assistant', content: path[i].answer });
  }
  messages.push({ role: 'user', content: path[last].question }, ...called(path[last]));
  return { request: { ...set, messages }, answered, left };
}

/** The calls of an exchange that were answered, and with what. @param {Exchange} exchange @returns {import('./api.js').ChatMessage[]} */
const called = ({ rounds = [] }) => rounds.filter(({ calls }) => calls.every((c) => c.result !== undefined)).flatMap(({ content, calls }, r) => {
  const id = (/** @type {import('./exchange.js').Call} */ call, /** @type {number} */ i) => call.id || `call_${r}_${i}`;
  return [
    { role: 'assistant', content, tool_calls: calls.map((c, i) => ({ id: id(c, i), type: 'function', function: { name: c.name, arguments: c.arguments } })) },
    ...calls.map((c, i) => ({ role: 'tool', tool_call_id: id(c, i), content: c.result ?? '' })),
  ];
});

/**
 * The request for the rest of an answer.
 * @param {Exchange[]} path that ends with it
 * @param {Plan} plan
 * @returns {Asked}
 */
export function rest(path, plan) {
  const asked = question(path, plan);
  const { answer, reasoning } = path[path.length - 1];
  asked.request.messages.push({ role: 'assistant', content: answer, ...(reasoning ? { reasoning_content: reasoning } : {}) });
  asked.request.continue_final_message = true;
  return asked;
}
