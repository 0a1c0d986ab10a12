// The methods of finding an answer, in the order of the menu. The first leaves the
// choice to the server.

/** @type {Record<string, { name: string, hint: string }>} */
export const methods = {
  '': { name: 'Server default', hint: '' },
  none: { name: 'Single answer', hint: 'One answer, token by token.' },
  self_consistency: { name: 'Self-consistency', hint: 'n answers; the most frequent one wins.' },
  best_of_n: { name: 'Best of n', hint: 'n answers; the best-scored one wins.' },
  deepconf: { name: 'DeepConf', hint: 'Up to n answers; unsure ones end early, and sure ones weigh more in the vote.' },
  beam_search: { name: 'Beam search', hint: 'n beams; only the best-scored continue, each in several ways.' },
  dvts: { name: 'DVTS', hint: 'n/width searches that do not compete with each other.' },
  particle_filtering: { name: 'Particle filtering', hint: 'n particles; each next step continues those drawn by their scores.' },
  auto: { name: 'Auto', hint: 'A few answers; a search if they disagree.' },
};
