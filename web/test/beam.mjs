// A beam search as the API streams it.
import { delta } from './scripted.mjs';

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

/** While it runs, a search knows what was pruned but not yet what will be chosen. */
function progress(step, more) {
  return { ...delta({ content: '' }), test_time_scaling: { method: 'beam_search', select: 'weighted_vote', step, live: 8, finished: 0, tokens: step * 120, best: 0.97, leader: null, agreement: 0, ...more } };
}

const step = (n) => progress(n, {
  added: tree.filter((node) => node.step === n).map((node) => ({ ...node, fate: node.fate === 'pruned' ? 'pruned' : 'kept' })),
});
const writing = (n, parent, words) => progress(n, {
  partial: Array.from({ length: 8 }, (_, index) => ({ index, parent: parent(index), text: words(index), tokens: 12, logprob: -0.1 })),
});

export const beamSearch = [
  delta({ role: 'assistant', content: '' }),
  writing(1, () => -1, (i) => first[i % 4].slice(0, 9)), writing(1, () => -1, (i) => first[i % 4].slice(9, 20 + i)),
  step(1), step(2), writing(3, (i) => (i < 4 ? 8 : 9), (i) => 'Now he has 6+114=130.'.slice(0, 12 + i)),
  step(3), step(4),
  delta({ reasoning_content: 'Step 1, 8 tried:\n  <b>first</b>\n' }), delta({ reasoning_content: 'Chosen: candidate 1.\n' }),
  delta({ content: answer }),
  {
    ...delta({}, { finish_reason: 'stop', test_time_scaling: { candidate: 0, score: 0.99, answer: '408', votes: 2, step_scores: [0.97, 0.96, 0.98, 0.99, 0.99] } }),
    test_time_scaling: {
      method: 'beam_search', n: 8, width: 4, steps: 5, stop_reason: 'complete', select: 'weighted_vote', agreement: 0.67, tree,
      candidates: [
        { candidate: 0, text: answer, score: 0.99, answer: '408', votes: 2, finish_reason: 'stop' },
        { candidate: 1, text: answer, score: 0.99, answer: '408', votes: 2, finish_reason: 'stop' },
        { candidate: 2, text: answer.replaceAll('408', '398'), score: 0.42, answer: '398', votes: 1, finish_reason: 'stop' },
      ],
    },
  },
  { ...delta({}), choices: [], usage: { prompt_tokens: 60, completion_tokens: 614, total_tokens: 674 } },
];
