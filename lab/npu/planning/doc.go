// Package planning makes plans of experts for an NPU (the paper NPUMoE): which of them it
// computes, in which groups, and how many rows of each.
//
//	Calibration + Options ──New──▶ Plan
//	Calibration + Space ──Weigh──▶ the Plan of least modelled cost
//
// What a plan says, and how it is checked, is package experts.
package planning
