// Package judge has language models write critiques of candidates, and makes scores of them.
//
//	candidate ─▶ prompt ─▶ k critiques ─▶ the decision's words ─▶ their probabilities ─▶ score
//
// A Scorer judges in a form: a chain of thought that checks a solution (think-prm), one of each solution step (gen-prm), or
// JSON by a rubric of the operator's. The model is the generator itself, or one of its own. Critiques are rows of its
// engine's steps: a request's fork one computed prompt, a candidate's one that ends with it.
//
// A critique always comes to a decision: when it has spent its tokens, or has ended without one, the words that lead to the
// decision are put after it. The score is read off the logits there, so nothing depends on how a number is written. Equal
// texts are judged once.
//
// Texts of others, questions and answers, never become special tokens of a prompt.
package judge
