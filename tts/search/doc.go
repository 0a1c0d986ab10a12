// Package search answers with the best of many candidates (parallel test-time scaling). It decodes them as a
// scaling.Plan says and judges them with a tts.Scorer, which package reward makes of reward models:
//
//	prompt ─fork─▶ beams ─extend─▶ solution steps ─Judge─▶ scores ─survive─▶ survivors ─┐
//	                 ▲                                                    │ close losers
//	                 └────────────────────────── fork ────────────────────┴────────────┘
//
// A method is a file and a type each. The run grows beams within the budgets and reports them.
package search
