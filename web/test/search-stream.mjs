// A search as the API streams it, released chunk by chunk: what the page draws
// must not depend on how long a search takes.
import { createServer } from 'node:http';
import { once } from 'node:events';

const first = ['He has 250 fewer: 256-250=6.', 'He has 250 fewer: 256-250=25.', '6 boxes of 19 make 6*19=114.', 'He throws away 250: 256+250=506.'];
const second = ['6 boxes of 19 make 6*19=114.', '6 boxes of 19 make 6*19=124.'];
const tree = [
  { parent: -1, step: 1, text: first[0], score: 0.97, fate: 'chosen' },
  { parent: -1, step: 1, text: first[0], score: 0.97, fate: 'kept' },
  { parent: -1, step: 1, text: first[1], score: 0.08, fate: 'pruned' },
  { parent: -1, step: 1, text: first[1], score: 0.08, fate: 'pruned' },
  { parent: -1, step: 1, text: first[1], score: 0.08, fate: 'pruned' },
  { parent: -1, step: 1, text: first[2], score: 0.31, fate: 'pruned' },
  { parent: -1, step: 1, text: first[3], score: 0.02, fate: 'pruned' },
  { parent: -1, step: 1, text: first[0], score: 0.97, fate: 'kept' },
  { parent: 0, step: 2, text: second[0], score: 0.96, fate: 'chosen' },
  { parent: 0, step: 2, text: second[0], score: 0.96, fate: 'kept' },
  { parent: 0, step: 2, text: second[1], score: 0.05, fate: 'pruned' },
  { parent: 1, step: 2, text: second[0], score: 0.96, fate: 'kept' },
  { parent: 1, step: 2, text: second[1], score: 0.05, fate: 'pruned' },
  { parent: 8, step: 3, text: 'Now he has 6+114=120.', score: 0.98, fate: 'chosen' },
  { parent: 8, step: 3, text: 'Now he has 6+114=130.', score: 0.03, fate: 'pruned' },
  { parent: 9, step: 3, text: 'Now he has 25+114=139.', score: 0.01, fate: 'pruned' },
  { parent: 13, step: 4, text: 'He gets 288 more: 120+288=408.', score: 0.99, fate: 'chosen' },
  { parent: 13, step: 4, text: 'He gets 288 more: 120+288=398.', score: 0.55, fate: 'kept' },
  { parent: 16, step: 5, text: 'Answer: 408', score: 0.99, fate: 'chosen' },
  { parent: 16, step: 5, text: 'Answer: 408', score: 0.99, fate: 'kept' },
  { parent: 17, step: 5, text: 'Answer: 398', score: 0.42, fate: 'kept' },
];
export const answer = tree.filter((node) => node.fate === 'chosen').map((node) => node.text).join('\n');

/** The chunks; each but the first waits for `next`. */
const chunks = [
  delta({ role: 'assistant', content: '' }),
  progress(1, 8, 0), progress(2, 8, 0), progress(3, 8, 0), progress(4, 8, 0),
  delta({ reasoning_content: 'Step 1, 8 tried:\n  <b>first</b>\n' }), delta({ reasoning_content: 'Chosen: candidate 1.\n' }),
  { ...delta({ content: answer }) },
  {
    ...delta({}, { finish_reason: 'stop', test_time_scaling: { candidate: 0, score: 0.99, answer: '408', votes: 2, step_scores: [0.97, 0.96, 0.98, 0.99, 0.99] } }),
    test_time_scaling: {
      method: 'beam_search', n: 8, width: 4, steps: 5, stop_reason: 'complete', agreement: 0.67, tree,
      candidates: [
        { candidate: 0, text: answer, score: 0.99, answer: '408', votes: 2 },
        { candidate: 1, text: answer, score: 0.99, answer: '408', votes: 2 },
        { candidate: 2, text: answer.replaceAll('408', '398'), score: 0.42, answer: '398', votes: 1 },
      ],
    },
  },
  { ...delta({}), choices: [], usage: { prompt_tokens: 60, completion_tokens: 614, total_tokens: 674 } },
];

function delta(content, choice = {}) {
  return { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'lutra-tiny-l', choices: [{ index: 0, delta: content, finish_reason: null, ...choice }] };
}

/** While it runs, a search knows what was pruned but not yet what will be chosen. */
function progress(step, live, finished) {
  const added = tree.filter((node) => node.step === step).map((node) => ({ ...node, fate: node.fate === 'pruned' ? 'pruned' : 'kept' }));
  return { ...delta({ content: '' }), test_time_scaling: { method: 'beam_search', step, live, finished, tokens: step * 120, best: 0.97, leader: null, agreement: 0, added } };
}

/**
 * @returns {Promise<{ url: string, requests: any[], next: (count?: number) => void, stop: () => Promise<void> }>}
 */
export async function startSearchStream() {
  const requests = [];
  let allowed = 0;
  const waiting = new Set();
  const server = createServer(async (req, res) => {
    let body = '';
    for await (const piece of req) body += piece;
    requests.push(JSON.parse(body));
    res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Access-Control-Allow-Origin': '*' });
    res.on('close', () => waiting.forEach((wake) => wake()));
    for (const [i, chunk] of chunks.entries()) {
      while (i > 0 && allowed === 0 && !res.closed) {
        await new Promise((wake) => waiting.add(wake));
        waiting.clear();
      }
      if (res.closed) return; // the client has gone, and needs no permission
      if (i > 0) allowed--;
      res.write(`data: ${JSON.stringify(chunk)}\n\n`);
    }
    res.end('data: [DONE]\n\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    requests,
    next(count = 1) {
      allowed += count;
      waiting.forEach((wake) => wake());
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
