// Package reward scores answers with reward models. A model of a known Format
// becomes a Scorer, by which searches judge candidates and Rate judges given
// responses.
//
//	candidates ──tokenJudge, textJudge──▶ scoreTree ──batcher──▶ scores
//
// Judges feed the model with the generator's tokens or with text of the model's own
// format. The scoreTree of a request reads what they have in common once.
package reward
