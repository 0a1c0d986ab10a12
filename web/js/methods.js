// The methods of finding an answer, in the order of the menu. The first leaves the
// choice to the server.

import { t } from './words.js';

/** @type {Record<string, { name: string, hint: string }>} */
export const methods = {
  '': { name: t`Server default`, hint: '' },
  none: { name: t`Single answer`, hint: '' },
  self_consistency: { name: t`Self-consistency`, hint: t`n answers; the most frequent one wins.` },
  best_of_n: { name: t`Best of n`, hint: t`n answers; the best-scored one wins.` },
  deepconf: { name: t`DeepConf`, hint: t`Up to n answers; unsure ones end early, and sure ones weigh more in the vote.` },
  beam_search: { name: t`Beam search`, hint: t`n beams; only the best-scored continue, each in several ways.` },
  dvts: { name: t`DVTS`, hint: t`n/width searches that do not compete with each other.` },
  particle_filtering: { name: t`Particle filtering`, hint: t`n particles; each next step continues those drawn by their scores.` },
  auto: { name: t`Auto`, hint: t`A few answers; a search if they disagree.` },
};
