// Package npu plans models for Hexagon NPUs and studies the techniques that run them:
//
//	MODEL ──▶ soc.Model ──▶ Plan: tilings, TCM, timeline, bounds on four SoCs, drawing
//	Ablations: the papers' comparisons, by counted packets and the model, and accuracy
//	Examine: what of the device path this machine has
//
// Times and energies are modelled: see package soc.
package npu
