// Package mixtures calibrates and plans mixtures of experts for `lutra-lab npu`:
//
//	model, data sets ──Calibrate──▶ calibration.Calibration ──▶ tables, Figure 5
//	npu.Mixture, calibration ──NewPlan──▶ experts.Plan ──▶ tables
package mixtures
